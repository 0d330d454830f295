import { html } from 'hono/html'
import { checkLimits, maxNetworks } from '../accounts/key-limits.ts'
import { AccountsError, type AccountsRefusal } from '../accounts/refusals.ts'
import type { KeyLimits } from '../domain/key-limits.ts'
import { plainAddress, readNetwork } from '../domain/networks.ts'
import { field, lines, ticks } from './field.ts'
import type { Form } from './form.ts'
import type { Html } from './layout.ts'
import { writeNumber } from './time.ts'
import type { AccountVisit } from './visit.ts'

/** The longest text of as many networks as a key can have. */
const maxAddressCharacters = maxNetworks * 50

/** What stands in the fields of a key's limits. */
interface TypedLimits {
  readonly profiles: readonly string[]
  readonly perMinute: string
  readonly addresses: string
}

/** The fields of a key's limits, as they were filled in where that could not be taken, and as they stand otherwise. */
export function limitFields(visit: AccountVisit, limits: KeyLimits, refusal?: AccountsRefusal): Html {
  const { parts, form, address } = visit
  const typed = refusal === undefined ? typedOf(limits, visit) : readTyped(form)
  const plan = planOf(visit)
  const here = plainAddress(address)
  const problemOf = (code: AccountsRefusal, problem: string): string | undefined =>
    refusal === code ? problem : undefined
  return html`${ticks({
    name: 'profiles',
    question: 'Profiles',
    hint: 'What it may be used for. With all of them ticked it may use later ones, too.',
    problem: problemOf('profiles_invalid', 'Tick at least one profile: a key for none could do nothing.'),
    options: parts.profiles.map(({ id }) => ({ value: id, label: id })),
    isTicked: (id) => typed.profiles.includes(id),
  })}
  ${field({
    name: 'per_minute',
    label: 'Requests a minute',
    hint:
      plan === undefined
        ? undefined
        : `At most ${writeNumber(plan.requestsPerMinute)}, which all keys of the account share on ${plan.name}.`,
    problem: problemOf('per_minute_invalid', 'This must be a whole number that the plan allows, or empty.'),
    value: typed.perMinute,
    optional: true,
    isNumber: true,
    maxCharacters: 9,
  })}
  ${lines({
    name: 'addresses',
    label: 'Addresses',
    hint: html`One address or network in each line, such as <code>203.0.113.7</code> or <code>2001:db8::/32</code>.
      Empty: from anywhere.${here === undefined ? '' : html` Your own address now is <code>${here}</code>.`}`,
    problem: problemOf('addresses_invalid', problemOfAddresses(typed.addresses)),
    value: typed.addresses,
    optional: true,
    rows: 3,
    maxCharacters: maxAddressCharacters,
  })}`
}

/** The limits that were filled in. @throws AccountsError as `checkLimits` */
export function readLimits(visit: AccountVisit): KeyLimits {
  const { profiles, perMinute, addresses } = readTyped(visit.form)
  const known = visit.parts.profiles.map(({ id }) => id)
  if (perMinute !== '' && !/^\d{1,9}$/.test(perMinute)) throw new AccountsError('per_minute_invalid')
  const networks = linesOf(addresses)
  const limits = {
    profiles: known.every((id) => profiles.includes(id)) ? null : profiles,
    perMinute: perMinute === '' ? null : Number(perMinute),
    addresses: networks.length === 0 ? null : networks,
  }
  return checkLimits(limits, { profiles: known, plan: planOf(visit) })
}

/** Whether a refusal is about one of these fields, which then say so. */
export function isOfLimits(code: AccountsRefusal): boolean {
  return code === 'profiles_invalid' || code === 'per_minute_invalid' || code === 'addresses_invalid'
}

/** The limits of a key in a few words; undefined where it has none. */
export function writeLimits({ profiles, perMinute, addresses }: KeyLimits): string | undefined {
  const words = [
    ...(profiles === null ? [] : [`only ${profiles.join(', ')}`]),
    ...(perMinute === null ? [] : [`${writeNumber(perMinute)} a minute`]),
    ...(addresses === null ? [] : [`from ${addresses.length === 1 ? addresses[0] : `${addresses.length} networks`}`]),
  ]
  return words.length === 0 ? undefined : words.join(' · ')
}

function readTyped(form: Form): TypedLimits {
  return { profiles: form.texts('profiles'), perMinute: form.text('per_minute'), addresses: form.text('addresses') }
}

function typedOf({ profiles, perMinute, addresses }: KeyLimits, { parts }: AccountVisit): TypedLimits {
  return {
    profiles: profiles ?? parts.profiles.map(({ id }) => id),
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

/** Names the first that is none, so that nobody has to look for it. */
function problemOfAddresses(text: string): string {
  const all = linesOf(text)
  const wrong = all.find((line) => readNetwork(line) === undefined)
  if (wrong === undefined) return `These are ${all.length}; a key has ${maxNetworks} at most.`
  return `“${wrong.slice(0, 60)}” is no address and no network of IPv4 or IPv6.`
}

function planOf({ parts, signedIn }: AccountVisit) {
  return parts.plans.find(({ id }) => id === signedIn.account.planId)
}
