import { isCount, isObject } from '../../domain/json.ts'
import {
  claimLength,
  maxNumbers,
  maxTerms,
  outcomeLength,
  type RequestMessage,
  type ToOwner,
} from './owner-messages.ts'

type Fields = Readonly<Record<string, unknown>>
type Question = Extract<ToOwner, { do: string }>['do']

const isCountOrNull = (value: unknown): boolean => value === null || isCount(value)
const isText = (value: unknown): value is string => typeof value === 'string'

/** What the owner relies on in each question. */
const questions: Readonly<Record<Question, (message: Fields) => boolean>> = {
  signals: ({ accountId, plan }) => isText(accountId) && isObject(plan),
  health: () => true,
  hold: ({ request, nanoUsd, tokens }) => isCount(request) && isCount(nanoUsd) && isCount(tokens),
  flush: () => true,
  store: ({ noun, method, args }) => isText(noun) && isText(method) && Array.isArray(args),
}

/** Checks a message that a worker sent. @throws TypeError */
export function checkMessage(message: unknown): ToOwner {
  const isValid = Array.isArray(message) ? isRequestMessage(message) : isObject(message) && isCall(message)
  if (!isValid) throw new TypeError('not a valid message from a worker')
  return message as ToOwner
}

function isCall(message: Fields): boolean {
  const { do: what, call } = message
  return isText(what) && Object.hasOwn(questions, what) && isCount(call) && questions[what as Question](message)
}

/** What the ledger relies on in each message about a request. The second cell of all of them is a number. */
function isRequestMessage(message: readonly unknown[]): boolean {
  const [what, number, third, fourth, fifth, sixth] = message
  if (!isCount(number) || number >= maxNumbers) return false
  switch (what as RequestMessage[0]) {
    case 'terms':
      return number < maxTerms && isTerms(third)
    case 'admit':
      return isText(third) && isCount(fourth) && isCountsOrAbsent(fifth, claimLength)
    case 'settle':
      return isCountOrNull(third) && isCountOrNull(fourth) && isOutcome(fifth) && isCountsOrAbsent(sixth, 2)
    case 'durable':
      return isCount(third)
    case 'delivered':
    case 'undelivered':
      return true
    default:
      return false
  }
}

function isTerms(terms: unknown): boolean {
  if (!isObject(terms)) return false
  const { accountId, keyId, units, plan, budgets } = terms
  const isValid = isText(accountId) && isText(keyId) && isCount(units) && isObject(plan)
  return isValid && (budgets === undefined || (Array.isArray(budgets) && budgets.every(isBudget)))
}

function isBudget(budget: unknown): boolean {
  return isObject(budget) && isText(budget['id']) && isText(budget['window']) && isCount(budget['limit'])
}

function isCountsOrAbsent(cells: unknown, length: number): boolean {
  return cells === undefined || (Array.isArray(cells) && cells.length === length && cells.every(isCount))
}

/** One value that cannot be stored would keep every later record from the disk. */
function isOutcome(cells: unknown): boolean {
  if (!Array.isArray(cells) || cells.length !== outcomeLength || !isCount(cells[0])) return false
  for (const cell of cells) if (cell !== null && typeof cell !== 'string' && typeof cell !== 'number') return false
  return true
}
