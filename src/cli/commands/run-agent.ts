import { nearest } from '../../domain/profiles.ts'
import { agents, type Agent } from '../agents.ts'
import type { Command, Invocation } from '../command.ts'
import { CommandError, exitCodes, type ExitCode } from '../failures.ts'
import type { Terminal } from '../ports.ts'
import { isProgramThere } from '../process/find-program.ts'
import { callerOptions, findService, readClientConfig } from '../service-address.ts'
import { prepare } from './doctor.ts'
import { diagnose } from './doctor/diagnose.ts'
import { fetchModels, type Observations } from './doctor/inspect-service.ts'
import { jsonOf, listOf } from './doctor/read-answer.ts'

const names = agents.map(({ name }) => name)
const proxyVariables = ['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY']
const authCodes = ['key_missing', 'key_malformed', 'key_revoked', 'key_inactive', 'header_stripped']
const reachCodes = ['refused', 'unresolved', 'unreachable', 'timeout', 'certificate', 'closed']

export const runAgent: Command = {
  name: 'run',
  summary: `Start a coding agent (${names.join(', ')}) with the service as its provider. Does not change the agent's configuration files.`,
  arguments: ['AGENT'],
  passesOn: 'AGENT ARGUMENTS…',
  options: [
    ...callerOptions,
    {
      name: 'fusion-tool',
      summary:
        'Attach the tool svc-router:fusion, which lets the model consult several other models. Requires a premium plan.',
    },
  ],
  example: 'run codex -- exec "What does this project do?"',
  async run(invocation) {
    const agent = readAgent(invocation)
    const address = findService(invocation)
    const hasFusionTool = invocation.line.flag('fusion-tool')
    const clientConfig = { ...readClientConfig(invocation, address), hasFusionTool }
    const { env } = invocation.terminal
    if (!isProgramThere(agent.program, env['PATH']))
      throw new CommandError(exitCodes.config, `${agent.program} is not installed, or not on PATH`, agent.install)
    const { subject, reporter } = prepare(invocation, { ...address, baseUrl: clientConfig.baseUrl })
    const sight = await fetchModels(subject)
    const findings = diagnose(subject, sight, reporter)
    const blocking = findings.find(({ blocks }) => blocks)
    if (blocking !== undefined) throw new CommandError(exitCodeOf(blocking.code), blocking.what, blocking.fix)
    for (const { what } of findings) invocation.terminal.err(`note: ${what}`)
    const program = agent.start({
      clientConfig,
      // A missing key is a blocking finding, so the key is set here.
      key: subject.key!.reveal(),
      contextTokens: contextTokensOf(sight, clientConfig.model),
      args: invocation.line.passedOn,
      env,
    })
    const reached = { ...program, env: { ...reachableEnv(clientConfig.baseUrl, env), ...program.env } }
    return { text: '', json: undefined, talk: [], exitCode: await invocation.ports.runProgram(reached) }
  },
}

function readAgent(invocation: Invocation): Agent {
  const name = invocation.argument(0, 'the agent', `run AGENT; agents: ${names.join(', ')}`)
  const agent = agents.find((known) => known.name === name)
  if (agent !== undefined) return agent
  const near = nearest(name, names)
  const connectable = `one of: ${names.join(', ')}; for others: ${invocation.command('connect')}`
  throw new CommandError(
    exitCodes.usage,
    'there is no agent with that name',
    near === undefined ? connectable : `did you mean "${invocation.command(`run ${near}`)}"?`,
  )
}

/** Exempts the service from the environment's proxy, which cannot reach addresses of this machine. */
function reachableEnv(baseUrl: string, env: Terminal['env']): Readonly<Record<string, string>> {
  const { hostname } = new URL(baseUrl)
  const isLocal = hostname === 'localhost' || hostname === '[::1]' || hostname.startsWith('127.')
  const hasProxy = proxyVariables.some((name) => (env[name] ?? env[name.toLowerCase()] ?? '') !== '')
  if (!isLocal || !hasProxy) return {}
  const kept = [env['NO_PROXY'], env['no_proxy'], hostname].filter((value) => value !== undefined && value !== '')
  return { NO_PROXY: kept.join(','), no_proxy: kept.join(',') }
}

function exitCodeOf(code: string): ExitCode {
  if (authCodes.includes(code)) return exitCodes.auth
  return reachCodes.includes(code) ? exitCodes.unreachable : exitCodes.failure
}

/** The profile's context window, from the model list that the service provides for Codex. */
function contextTokensOf({ models }: Observations, model: string): number | undefined {
  const tokens = listOf(jsonOf(models)['models']).find(({ slug }) => slug === model)?.['context_window']
  return typeof tokens === 'number' && Number.isSafeInteger(tokens) && tokens > 0 ? tokens : undefined
}
