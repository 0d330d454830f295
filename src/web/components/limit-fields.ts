import { html } from 'hono/html'
import { AccountsError, type AccountsErrorCode } from '../../accounts/accounts-error.ts'
import { checkLimits, maxNetworks } from '../../accounts/key-limits.ts'
import type { KeyLimits } from '../../domain/key-limits.ts'
import { plainAddress, readNetwork } from '../../runtime/networks.ts'
import type { Form } from '../http/form.ts'
import type { AccountVisit } from '../http/visit.ts'
import { field, lines, ticks } from './field.ts'
import type { Html } from './html.ts'
import { writeNumber } from './time.ts'

/** Enough for the maximum number of networks. */
const maxAddressCharacters = maxNetworks * 50

/** The values of the limit fields. */
interface TypedLimits {
  readonly profiles: readonly string[]
  readonly perMinute: string
  readonly addresses: string
}

/** The limit fields of a key, with the submitted values if they were rejected, otherwise with the stored limits. */
export function limitFields(visit: AccountVisit, limits: KeyLimits, errorCode?: AccountsErrorCode): Html {
  const { deps, form, address } = visit
  const typed = errorCode === undefined ? typedOf(limits, visit) : readTyped(form)
  const plan = planOf(visit)
  const here = plainAddress(address)
  const problemOf = (code: AccountsErrorCode, problem: string): string | undefined =>
    errorCode === code ? problem : undefined
  return html`${ticks({
    name: 'profiles',
    question: 'Profiles',
    hint: 'The profiles this key can use. If you select all of them, it can also use profiles added later.',
    problem: problemOf('profiles_invalid', 'Select at least one profile.'),
    options: deps.profiles.map(({ id }) => ({ value: id, label: id })),
    isTicked: (id) => typed.profiles.includes(id),
  })}
  ${field({
    name: 'per_minute',
    label: 'Requests per minute',
    hint:
      plan === undefined
        ? undefined
        : `At most ${writeNumber(plan.requestsPerMinute)}, the limit that the ${plan.name} plan sets for all keys together.`,
    problem: problemOf('per_minute_invalid', 'Enter a whole number that your plan allows, or leave this empty.'),
    value: typed.perMinute,
    optional: true,
    isNumber: true,
    maxCharacters: 9,
  })}
  ${lines({
    name: 'addresses',
    label: 'IP addresses',
    hint: html`One address or network per line, at most ${maxNetworks}, such as <code>203.0.113.7</code> or
      <code>2001:db8::/32</code>. Leave empty to allow any
      address.${here === undefined ? '' : html` Your current address is <code>${here}</code>.`}`,
    problem: problemOf('addresses_invalid', problemOfAddresses(typed.addresses)),
    value: typed.addresses,
    optional: true,
    rows: 3,
    maxCharacters: maxAddressCharacters,
  })}`
}

/** The submitted limits. @throws AccountsError as `checkLimits` */
export function readLimits(visit: AccountVisit): KeyLimits {
  const { profiles, perMinute, addresses } = readTyped(visit.form)
  const known = visit.deps.profiles.map(({ id }) => id)
  if (perMinute !== '' && !/^\d{1,9}$/.test(perMinute)) throw new AccountsError('per_minute_invalid')
  const networks = linesOf(addresses)
  const limits = {
    profiles: known.every((id) => profiles.includes(id)) ? null : profiles,
    perMinute: perMinute === '' ? null : Number(perMinute),
    addresses: networks.length === 0 ? null : networks,
  }
  return checkLimits(limits, { profiles: known, plan: planOf(visit) })
}

/** Whether an error belongs to one of these fields. */
export function isOfLimits(code: AccountsErrorCode): boolean {
  return code === 'profiles_invalid' || code === 'per_minute_invalid' || code === 'addresses_invalid'
}

/** A short summary of a key's limits; undefined if it has none. */
export function writeLimits({ profiles, perMinute, addresses }: KeyLimits): string | undefined {
  const words = [
    ...(profiles === null ? [] : [`only ${profiles.join(', ')}`]),
    ...(perMinute === null ? [] : [`${writeNumber(perMinute)} per minute`]),
    ...(addresses === null ? [] : [`from ${addresses.length === 1 ? addresses[0] : `${addresses.length} networks`}`]),
  ]
  return words.length === 0 ? undefined : words.join(' · ')
}

function readTyped(form: Form): TypedLimits {
  return { profiles: form.texts('profiles'), perMinute: form.text('per_minute'), addresses: form.text('addresses') }
}

function typedOf({ profiles, perMinute, addresses }: KeyLimits, { deps }: AccountVisit): TypedLimits {
  return {
    profiles: profiles ?? deps.profiles.map(({ id }) => id),
    perMinute: perMinute === null ? '' : String(perMinute),
    addresses: (addresses ?? []).join('\n'),
  }
}

function linesOf(text: string): string[] {
  return text
    .split(/[\n,]/)
    .map((line) => line.trim())
    .filter((line) => line !== '')
}

/** Names the first invalid entry. */
function problemOfAddresses(text: string): string {
  const all = linesOf(text)
  const wrong = all.find((line) => readNetwork(line) === undefined)
  if (wrong === undefined) return `You entered ${all.length} networks. A key can have at most ${maxNetworks}.`
  return `“${wrong.slice(0, 60)}” is not an IPv4 or IPv6 address or network.`
}

function planOf({ deps, signedIn }: AccountVisit) {
  return deps.plans.find(({ id }) => id === signedIn.account.planId)
}
