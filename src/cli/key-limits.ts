import { AccountsError } from '../accounts/accounts-error.ts'
import { checkLimits, maxNetworks } from '../accounts/key-limits.ts'
import type { Config } from '../config/config.ts'
import type { Account } from '../domain/accounts.ts'
import type { KeyLimits } from '../domain/key-limits.ts'
import type { CommandLine, Option } from './command-line.ts'

/** The value of each option that removes the limit. */
const lifting = { profile: 'all', 'per-minute': 'none', address: 'any' } as const
/** How many entries of a list a table shows. */
const maxShown = 2

/** The options that set a key's limits. */
export const limitOptions: readonly Option[] = [
  {
    name: 'profile',
    value: 'PROFILE',
    repeats: true,
    summary: `A profile that the key may use. Can be repeated. "${lifting.profile}" allows every profile.`,
  },
  {
    name: 'per-minute',
    value: 'N',
    summary: `Requests per minute for this key, within the plan's limit. "${lifting['per-minute']}" removes the limit.`,
  },
  {
    name: 'address',
    value: 'CIDR',
    repeats: true,
    summary: `An IP address or network that the key may be used from. Can be repeated, up to ${maxNetworks} times. "${lifting.address}" allows every address.`,
  },
]

/** Whether a command line sets any limit. */
export function hasLimits(line: CommandLine): boolean {
  return line.list('profile').length + line.list('address').length > 0 || line.option('per-minute') !== undefined
}

/**
 * Reads the limits from a command line. Limits that it does not set keep their value from `before`.
 * @throws AccountsError as `checkLimits`
 */
export function readLimits(
  line: CommandLine,
  before: KeyLimits,
  account: Account | undefined,
  { profiles, plans }: Config,
): KeyLimits {
  const plan = plans.find(({ id }) => id === account?.planId)
  const limits = {
    profiles: readList(line, 'profile', before.profiles),
    perMinute: readPerMinute(line.option('per-minute'), before.perMinute),
    addresses: readList(line, 'address', before.addresses),
  }
  return checkLimits(limits, { profiles: profiles.map(({ id }) => id), plan })
}

/** Summarizes a key's limits; empty if it has none. */
export function writeLimits({ profiles, perMinute, addresses }: KeyLimits): string {
  const list = (entries: readonly string[]): string => {
    const more = entries.length - maxShown
    return entries.slice(0, maxShown).join(', ') + (more > 0 ? ` and ${more} more` : '')
  }
  return [
    ...(profiles === null ? [] : [list(profiles)]),
    ...(perMinute === null ? [] : [`${perMinute} per minute`]),
    ...(addresses === null ? [] : [`from ${list(addresses)}`]),
  ].join('; ')
}

function readList(
  line: CommandLine,
  name: 'profile' | 'address',
  before: readonly string[] | null,
): readonly string[] | null {
  const given = line.list(name)
  if (given.length === 0) return before
  return given.length === 1 && given[0] === lifting[name] ? null : given
}

function readPerMinute(given: string | undefined, before: number | null): number | null {
  if (given === undefined) return before
  if (given === lifting['per-minute']) return null
  if (!/^\d{1,9}$/.test(given)) throw new AccountsError('per_minute_invalid')
  return Number(given)
}
