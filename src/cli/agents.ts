import { objectOf, parseObject } from '../domain/json.ts'
import {
  claudeHeaders,
  claudeHeadersVariable,
  claudeKeyVariable,
  claudeOtherVariables,
  claudeVariables,
  codexSettings,
  opencodeConfig,
} from '../domain/client-settings.ts'
import { CommandError, exitCodes } from './failures.ts'
import type { Program } from './ports.ts'
import type { Wiring } from '../domain/wiring.ts'

/** What an agent is started with besides the wiring. */
interface AgentStart {
  readonly wiring: Wiring
  /** The key itself, which goes into the agent's environment and never among its arguments. */
  readonly key: string
  /** How much the profile takes, in tokens, where the service says. */
  readonly contextTokens: number | undefined
  /** What its user wants it to be told. */
  readonly args: readonly string[]
  readonly env: Readonly<Record<string, string | undefined>>
}

/** An agent that can be started through the service with nothing but arguments and environment. */
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
    start({ wiring, key, contextTokens, args }) {
      const { top, table, provider } = codexSettings(wiring)
      const settings = [
        ...top,
        ...provider.map(([name, value]) => [`${table}.${name}`, value] as const),
        ...(contextTokens === undefined ? [] : [['model_context_window', contextTokens] as const]),
      ]
      const overrides = settings.flatMap(([name, value]) => ['-c', `${name}=${JSON.stringify(value)}`])
      return { name: 'codex', args: [...overrides, ...args], env: { [wiring.keyVariable]: key } }
    },
  },
  {
    name: 'claude',
    program: 'claude',
    install: 'npm install -g @anthropic-ai/claude-code',
    start: ({ wiring, key, args, env }) => ({
      name: 'claude',
      args,
      env: {
        ...Object.fromEntries(claudeOtherVariables.map((name) => [name, undefined])),
        ...claudeVariables(wiring),
        ...claudeHeaders(wiring, env[claudeHeadersVariable]),
        [claudeKeyVariable]: key,
      },
    }),
  },
  {
    name: 'opencode',
    program: 'opencode',
    install: 'npm install -g opencode-ai',
    start: ({ wiring, key, contextTokens, args, env }) => ({
      name: 'opencode',
      args,
      env: {
        [opencodeVariable]: mergeOpencode(env[opencodeVariable], wiring, contextTokens),
        [wiring.keyVariable]: key,
      },
    }),
  },
]

/** Merged by opencode over all its files, so that none has to be edited. */
const opencodeVariable = 'OPENCODE_CONFIG_CONTENT'

/** Ours over what its user has in the same variable. @throws CommandError where that is no JSON object */
function mergeOpencode(theirs: string | undefined, wiring: Wiring, contextTokens: number | undefined): string {
  const { model, provider } = opencodeConfig(wiring, contextTokens)
  const given = parseObject(theirs ?? '{}')
  if (given === undefined) {
    throw new CommandError(exitCodes.usage, `${opencodeVariable} is not a JSON object`, `unset ${opencodeVariable}`)
  }
  return JSON.stringify({ ...given, model, provider: { ...objectOf(given['provider']), ...provider } })
}
