import { readFileSync, statSync } from 'node:fs'
import { readDurationMs } from '../../config/measures.ts'
import { maxPolicyBytes, readPolicyFile } from '../../config/policy-file.ts'
import type { Profile } from '../../domain/profiles.ts'
import { dayMs } from '../../runtime/durations.ts'
import { readWhole } from '../command-line.ts'
import type { Command, Invocation } from '../command.ts'
import { CommandError, exitCodes } from '../failures.ts'
import { describeReplay, writeReplay } from '../replay-text.ts'
import { whole, type ValueShape } from '../value-shapes.ts'

const defaultLimit = 20_000
const maxLimit = 100_000
const defaultSince = '7d'
const maxSinceMs = 400 * dayMs

const since: ValueShape = {
  what: 'a duration of at most 400 days, such as 6h or 7d',
  example: defaultSince,
  accepts: (text) => {
    const ms = readDurationMs(text)
    return ms !== undefined && ms > 0 && ms <= maxSinceMs
  },
}

/** Runs recorded requests through another routing policy (contract 33.12). */
export const replay: Command = {
  name: 'replay',
  summary:
    'Run recorded requests through another routing policy, and show what would have changed in cost, latency, and failures. Calls no backend.',
  arguments: [],
  needsCredentials: true,
  options: [
    {
      name: 'policy',
      value: 'FILE',
      required: true,
      summary:
        'A file of at most 1 MiB with the profile and the "backends" or "routing" to try, written as in the configuration.',
    },
    { name: 'profile', value: 'PROFILE', summary: 'The profile in the file. Required if the file has several.' },
    {
      name: 'since',
      value: 'DURATION',
      shape: since,
      summary: `How far back to read records, such as 6h, at most 400d. Default ${defaultSince}.`,
    },
    {
      name: 'limit',
      value: 'COUNT',
      shape: whole(1, maxLimit, defaultLimit),
      summary: `Maximum number of records to read, newest first, at most ${maxLimit}. Default ${defaultLimit}.`,
    },
    {
      name: 'assume-capacity',
      summary: 'Assume that a backend does not slow down when it gets more concurrent calls than the records show.',
    },
  ],
  example: 'replay --policy policy.yaml --since 24h',
  run(invocation) {
    const { line, ports } = invocation
    const limit = readWhole(line, 'limit', 1, maxLimit) ?? defaultLimit
    const sinceMs = ports.clock.nowMs() - readDurationMs(line.option('since') ?? defaultSince)!
    const path = line.option('policy') ?? ''
    const text = readText(path)
    return invocation.withStore(async ({ config }) => {
      const policy = choose(readPolicyFile(path, text, config), invocation)
      const assumesCapacity = line.flag('assume-capacity')
      const report = await ports.replay(config, { policy, sinceMs, limit, assumesCapacity })
      return { text: writeReplay(report), json: report, talk: describeReplay(report, assumesCapacity) }
    })
  },
}

function choose(profiles: readonly Profile[], { line }: Invocation): Profile {
  const named = line.option('profile')
  const found = named === undefined ? profiles[0] : profiles.find(({ id }) => id === named)
  if (found === undefined)
    throw new CommandError(
      exitCodes.usage,
      named === undefined ? 'the policy file has no profile' : 'the policy file does not have this profile',
      `add it to "profiles" in the file${named === undefined ? '' : ', or choose another one with --profile'}`,
    )
  if (named === undefined && profiles.length > 1)
    throw new CommandError(
      exitCodes.usage,
      'the policy file has several profiles',
      `choose one: ${profiles.map(({ id }) => `--profile ${id}`).join(' or ')}`,
    )
  return found
}

function readText(path: string): string {
  try {
    if (statSync(path).size <= maxPolicyBytes) return readFileSync(path, 'utf8')
  } catch {
    throw new CommandError(exitCodes.usage, 'the file cannot be read', '--policy FILE')
  }
  throw new CommandError(exitCodes.usage, 'the file is larger than 1 MiB', '--policy FILE')
}
