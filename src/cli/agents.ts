import type { ClientConfig } from '../domain/client-config.ts'
import {
  claudeHeaders,
  claudeHeadersVariable,
  claudeKeyVariable,
  claudeOtherVariables,
  claudeVariables,
  codexSettings,
  opencodeConfig,
} from '../domain/client-settings.ts'
import { objectOf, parseObject } from '../domain/json.ts'
import { CommandError, exitCodes } from './failures.ts'
import type { Program } from './ports.ts'

/** What is needed to start an agent. */
interface AgentStart {
  readonly clientConfig: ClientConfig
  /** The API key. It goes into the agent's environment, never into its arguments. */
  readonly key: string
  /** The profile's context window in tokens, if the service reports it. */
  readonly contextTokens: number | undefined
  /** Arguments from the user. */
  readonly args: readonly string[]
  readonly env: Readonly<Record<string, string | undefined>>
}

/** An agent that can use the service when started with arguments and environment variables only (contract 33.4). */
export interface Agent {
  readonly name: string
  readonly program: string
  readonly install: string
  start(given: AgentStart): Program
}

export const agents: readonly Agent[] = [
  {
    name: 'codex',
    program: 'codex',
    install: 'npm install -g @openai/codex',
    start({ clientConfig, key, contextTokens, args }) {
      const { top, table, provider } = codexSettings(clientConfig)
      const settings = [
        ...top,
        ...provider.map(([name, value]) => [`${table}.${name}`, value] as const),
        ...(contextTokens === undefined ? [] : [['model_context_window', contextTokens] as const]),
      ]
      const overrides = settings.flatMap(([name, value]) => ['-c', `${name}=${JSON.stringify(value)}`])
      return { name: 'codex', args: [...overrides, ...args], env: { [clientConfig.keyVariable]: key } }
    },
  },
  {
    name: 'claude',
    program: 'claude',
    install: 'npm install -g @anthropic-ai/claude-code',
    start: ({ clientConfig, key, args, env }) => ({
      name: 'claude',
      args,
      env: {
        ...Object.fromEntries(claudeOtherVariables.map((name) => [name, undefined])),
        ...claudeVariables(clientConfig),
        ...claudeHeaders(clientConfig, env[claudeHeadersVariable]),
        [claudeKeyVariable]: key,
      },
    }),
  },
  {
    name: 'opencode',
    program: 'opencode',
    install: 'npm install -g opencode-ai',
    start: ({ clientConfig, key, contextTokens, args, env }) => ({
      name: 'opencode',
      args,
      env: {
        [opencodeVariable]: mergeOpencode(env[opencodeVariable], clientConfig, contextTokens),
        [clientConfig.keyVariable]: key,
      },
    }),
  },
]

/** opencode merges this over all its files, so no file has to be edited. */
const opencodeVariable = 'OPENCODE_CONFIG_CONTENT'

/**
 * Merges our settings over the user's in the same variable. @throws CommandError if the variable is not a JSON object
 */
function mergeOpencode(
  theirs: string | undefined,
  clientConfig: ClientConfig,
  contextTokens: number | undefined,
): string {
  const { model, provider } = opencodeConfig(clientConfig, contextTokens)
  const given = parseObject(theirs ?? '{}')
  if (given === undefined) {
    throw new CommandError(exitCodes.usage, `${opencodeVariable} is not a JSON object`, `unset ${opencodeVariable}`)
  }
  return JSON.stringify({ ...given, model, provider: { ...objectOf(given['provider']), ...provider } })
}
