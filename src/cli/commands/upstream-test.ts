import type { AttemptOutcome } from '../../domain/upstream.ts'
import { AccountsError } from '../../accounts/accounts-error.ts'
import { accountOption, type Command } from '../command.ts'
import { CommandError, exitCodes, type ExitCode } from '../failures.ts'
import { writeTable } from '../terminal/table.ts'

const authOutcomes: readonly AttemptOutcome[] = ['rejected_credentials']
const unreachableOutcomes: readonly AttemptOutcome[] = ['unreachable', 'reset', 'timeout']

export const upstreamTest: Command = {
  name: 'upstream test',
  summary: 'Send a small test request to one connected provider, or to all of them.',
  arguments: ['[ID]'],
  options: [accountOption],
  example: 'upstream test',
  run: (invocation) =>
    invocation.withStore(async ({ config, accountsDeps, account }) => {
      const [id] = invocation.line.positionals
      const all = await accountsDeps.store.listUpstreams((await account()).id)
      const chosen = id === undefined ? all : all.filter((upstream) => upstream.id === id)
      if (id !== undefined && chosen.length === 0) throw new AccountsError('upstream_unknown')
      if (chosen.length === 0)
        throw new CommandError(
          exitCodes.failure,
          'no provider is connected',
          invocation.command('upstream add PROVIDER --model MODEL'),
        )
      const results = []
      for (const upstream of chosen) {
        const test = await invocation.ports.testUpstream(config, upstream)
        results.push({ id: upstream.id, provider: upstream.provider, model: upstream.model, ...test })
      }
      const rows = results.map((result) => [
        result.id,
        result.provider,
        result.model,
        result.outcome,
        String(result.status ?? ''),
        `${Math.round(result.ms)} ms`,
        result.reason ?? '',
      ])
      const exitCode = exitCodeOf(results.map(({ outcome }) => outcome))
      return {
        text: writeTable([['ID', 'PROVIDER', 'MODEL', 'OUTCOME', 'STATUS', 'TIME', 'PROVIDER SAYS'], ...rows]),
        json: results,
        talk: [advice(exitCode, (text) => invocation.command(text))],
        exitCode,
      }
    }),
}

/** The exit code for these test outcomes; the worst outcome decides. */
export function exitCodeOf(outcomes: readonly AttemptOutcome[]): ExitCode {
  const failed = outcomes.filter((outcome) => outcome !== 'answered')
  if (failed.length === 0) return exitCodes.ok
  if (failed.some((outcome) => authOutcomes.includes(outcome))) return exitCodes.auth
  return failed.every((outcome) => unreachableOutcomes.includes(outcome)) ? exitCodes.unreachable : exitCodes.failure
}

function advice(exitCode: ExitCode, command: (text: string) => string): string {
  if (exitCode === exitCodes.ok) return `All providers answered. Next: ${command('requests')}`
  if (exitCode === exitCodes.auth)
    return `A provider rejected its credential. Next: ${command('upstream remove ID --yes')}, then add it again with a working one.`
  if (exitCode === exitCodes.unreachable)
    return `A provider is not reachable. Check its URL and the network: ${command('upstream list')}`
  return `A provider rejected the request. Check the name of the model: ${command('upstream list')}`
}
