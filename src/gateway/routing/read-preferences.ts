import { invalidRequest, type ServiceError } from '../../domain/errors.ts'
import { type Json, type JsonObject, isObject } from '../../domain/json.ts'
import {
  rescueModes,
  routingField,
  routingSorts,
  type PriceCap,
  type RoutingPreferences,
} from '../../domain/routing-policy.ts'
import { isArray, type Draft } from '../../formats/fields.ts'

const maxNames = 32
const maxNameCharacters = 200
const maxPrice = 1_000_000

type Reader = (draft: Draft<RoutingPreferences>, value: Json, path: string) => void

const readers: Readonly<Record<string, Reader>> = {
  sort: (draft, value, path) => {
    const sort = routingSorts.find((known) => known === value)
    if (sort === undefined) throw wrong(path, `one of ${routingSorts.join(', ')}`)
    draft.sort = sort
  },
  order: (draft, value, path) => (draft.order = names(value, path)),
  only: (draft, value, path) => (draft.only = names(value, path)),
  ignore: (draft, value, path) => (draft.ignore = names(value, path)),
  regions: (draft, value, path) => (draft.regions = names(value, path).map((region) => region.toLowerCase())),
  zero_retention: (draft, value, path) => {
    if (typeof value !== 'boolean') throw wrong(path, 'true or false')
    draft.zeroRetention = value
  },
  max_price: (draft, value, path) => (draft.maxPrice = priceCap(value, path)),
  rescue: (draft, value, path) => {
    const mode = rescueModes.find((known) => known === value)
    if (mode === undefined) throw wrong(path, `one of ${rescueModes.join(', ')}`)
    draft.rescue = mode
  },
}

/**
 * The member `routing` of a request's body: the caller's preferences (contract 7.27). Null counts as absent, for single
 * preferences too.
 * @throws ServiceError `invalid_request` with `param` for an unknown name or an invalid value
 */
export function readRoutingPreferences(body: JsonObject): RoutingPreferences | undefined {
  const given = body[routingField]
  if (given === undefined || given === null) return undefined
  if (!isObject(given)) throw wrong(routingField, 'an object')
  const draft: Draft<RoutingPreferences> = {}
  for (const [name, value] of Object.entries(given)) {
    const path = `${routingField}.${/^[\w-]{1,40}$/.test(name) ? name : '…'}`
    const read = Object.hasOwn(readers, name) ? readers[name] : undefined
    // An unknown requirement must not be ignored: the request could go where the caller does not want it to go.
    if (read === undefined) throw invalidRequest(path, `${path} is unknown. Known: ${Object.keys(readers).join(', ')}.`)
    if (value !== undefined && value !== null) read(draft, value, path)
  }
  return draft
}

function names(value: Json, path: string): readonly string[] {
  const isName = (name: Json): name is string =>
    typeof name === 'string' && name !== '' && name.length <= maxNameCharacters
  if (isArray(value) && value.length > 0 && value.length <= maxNames && value.every(isName)) return value
  throw wrong(path, `a list of 1 to ${maxNames} names`)
}

function priceCap(value: Json, path: string): PriceCap {
  if (!isObject(value)) throw wrong(path, 'an object with input, output, or both, in US dollars per million tokens')
  const cap: Draft<PriceCap> = {}
  for (const [name, amount] of Object.entries(value)) {
    if (name !== 'input' && name !== 'output') throw wrong(path, 'an object with input, output, or both')
    if (amount === null) continue
    if (typeof amount !== 'number' || amount < 0 || amount > maxPrice)
      throw wrong(`${path}.${name}`, 'an amount of US dollars per million tokens, such as 1.25')
    cap[name] = amount
  }
  return cap
}

function wrong(path: string, expected: string): ServiceError {
  return invalidRequest(path, `${path} must be ${expected}.`)
}
