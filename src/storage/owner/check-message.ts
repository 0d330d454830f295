import { isCount, isObject } from '../../domain/json.ts'
import type { ToOwner } from './owner-messages.ts'

type Fields = Readonly<Record<string, unknown>>

const isText = (value: unknown): boolean => typeof value === 'string'
const isDueMark = (value: unknown): boolean => value === null || isCount(value)

/** What the ledger relies on in each message. */
const checks: Readonly<Record<ToOwner['do'], (message: Fields) => boolean>> = {
  admit: ({ call, opening, plan }) => isCount(call) && isOpening(opening) && isObject(plan),
  signals: ({ call, accountId, plan }) => isCount(call) && isText(accountId) && isObject(plan),
  durable: ({ call, id }) => isCount(call) && isText(id),
  health: ({ call }) => isCount(call),
  flush: ({ call }) => isCount(call),
  store: ({ call, noun, method, args }) => isCount(call) && isText(noun) && isText(method) && Array.isArray(args),
  settle: ({ id, outcome, dueMark }) => isText(id) && isOutcome(outcome) && isDueMark(dueMark),
  delivered: ({ id }) => isText(id),
  undelivered: ({ id }) => isText(id),
}

/** Checks a message that a worker sent. @throws TypeError */
export function checkMessage(message: unknown): ToOwner {
  const { do: what } = isObject(message) ? message : {}
  if (typeof what !== 'string' || !Object.hasOwn(checks, what) || !checks[what as ToOwner['do']](message as Fields))
    throw new TypeError('not a valid message from a worker')
  return message as ToOwner
}

function isOpening(opening: unknown): boolean {
  if (!isObject(opening)) return false
  const { id, accountId, keyId, units } = opening
  return isText(id) && isText(accountId) && isText(keyId) && isCount(units)
}

/** One value that cannot be stored would keep every later record from the disk. */
function isOutcome(outcome: unknown): boolean {
  const isCell = (value: unknown): boolean => value === null || typeof value === 'string' || typeof value === 'number'
  return isObject(outcome) && isCount(outcome['charged']) && Object.values(outcome).every(isCell)
}
