import type { KeyRate, UsageSignals } from '../../domain/account-meter.ts'
import type { Amounts, Budget, BudgetClaim } from '../../domain/budgets.ts'
import { type ErrorCode, errorCatalog, type ErrorFacts, ServiceError } from '../../domain/errors.ts'
import type { Plan } from '../../domain/plans.ts'
import type { RequestOpening } from '../../domain/requests.ts'
import { StoreUnavailable } from '../../runtime/store-unavailable.ts'
import { LedgerUnavailable } from '../ledger/ledger-unavailable.ts'
import type { OutcomeColumns } from '../requests.ts'
import { TooManySaves } from '../response-store.ts'

/** Everything about an admission but its id: requests of one key share it, so it is sent once (see `SentTerms`). */
export interface Terms extends Omit<RequestOpening, 'id'> {
  readonly plan: Plan
  readonly rate: KeyRate | undefined
  /** The budgets that apply; undefined if none do. */
  readonly budgets: readonly Budget[] | undefined
}

/** Numbers that name a worker's calls without an answer, and its requests that are not over. */
export const maxNumbers = 65_536
/** Maximum number of terms that an owner remembers for a worker. */
export const maxTerms = 8_192

/** What a worker asks the owner, apart from admissions; each gets exactly one `Answer`. */
export type Question =
  | { readonly do: 'signals'; readonly accountId: string; readonly plan: Plan; readonly rate: KeyRate | undefined }
  | { readonly do: 'health' }
  /** Answered with whether an admitted request may hold this much more of its budgets, once that is on disk. */
  | ({ readonly do: 'hold'; readonly request: number } & Amounts)
  /** Answered when everything recorded so far is on disk. */
  | { readonly do: 'flush' }
  /** A method of one of the stores. */
  | { readonly do: 'store'; readonly noun: string; readonly method: string; readonly args: readonly unknown[] }

/** A question with the number that its answer names. */
export type Call = Question & { readonly call: number }

/**
 * Messages about requests are arrays: each request has three or four, and names of fields would be most of what both
 * sides write and parse. `request` is the number of the call that admitted it,
 * and is free again after the request's last message.
 */
export type RequestMessage =
  | readonly ['terms', number: number, terms: Terms]
  /** Gets an `admitted`, or an `Answer` with an error. */
  | readonly ['admit', call: number, id: string, terms: number, claim?: ClaimCells]
  /** Gets a `durable` or a `failed` with the number of the wait once the request's records are on disk. */
  | readonly ['durable', request: number, wait: number]
  | RequestReport

/** What a worker tells the owner of an admitted request. */
export type RequestReport =
  /**
   * `dueMark`: see `LedgerJournal.settle`. With a wait, it gets the same answer as `durable`. `spent`: see
   * `Admission.settle`, as nanodollars and tokens.
   */
  | readonly [
      'settle',
      request: number,
      wait: number | null,
      dueMark: number | null,
      outcome: OutcomeCells,
      spent?: readonly [nanoUsd: number, tokens: number],
    ]
  /** The mark of a running stream or of a due answer is written. */
  | readonly ['delivered', request: number]
  /** A due answer will not be delivered. */
  | readonly ['undelivered', request: number]

export type ToOwner = Call | RequestMessage

/** The reply to a call. */
export type Answer =
  | { readonly call: number; readonly value: unknown }
  | { readonly call: number; readonly error: SentError }

/** What the owner says about requests. */
export type RequestAnswer =
  /** With the output limit that budgets can pay for, if the request has a claim. */
  | readonly ['admitted', call: number, signals: SignalCells, outputTokens?: number]
  /** The waits of requests whose records are on disk, or could not be written. Several requests may share a wait. */
  | readonly ['durable' | 'failed', waits: readonly number[]]

export type ToWorker = Answer | RequestAnswer

/** Whether requests can be recorded, and what of this worker waits for the database. */
export interface OwnerHealth {
  readonly isHealthy: boolean
  readonly queues: Readonly<Record<string, number>>
}

/** A claim without its budgets, which are in the terms, and without names. */
export type ClaimCells = ReturnType<typeof claimCells>

export function claimCells({ base, perOutputToken, leastOutput, mostOutput }: BudgetClaim) {
  return [base.nanoUsd, base.tokens, perOutputToken.nanoUsd, perOutputToken.tokens, leastOutput, mostOutput] as const
}

export function claimOf(cells: ClaimCells, budgets: readonly Budget[]): BudgetClaim {
  return {
    budgets,
    base: { nanoUsd: cells[0], tokens: cells[1] },
    perOutputToken: { nanoUsd: cells[2], tokens: cells[3] },
    leastOutput: cells[4],
    mostOutput: cells[5],
  }
}

/** The number of cells of a claim. */
export const claimLength = 6

/** The columns of an outcome without their names. */
export type OutcomeCells = ReturnType<typeof outcomeCells>

export function outcomeCells(columns: OutcomeColumns) {
  const { charged, attempts, input_tokens: input, output_tokens: output, cached_tokens: cached } = columns
  const { reasoning_tokens: reasoning, usage_source: source, error_code: code, first_content_ms: firstMs } = columns
  const {
    total_ms: totalMs,
    fusions,
    passed_by: passedBy,
    cache_write_tokens: written,
    usage_details: details,
  } = columns
  const { cost, cost_source: costSource, cache_saved: saved, price_version: prices, session } = columns
  return [
    charged,
    attempts,
    input,
    output,
    cached,
    reasoning,
    source,
    code,
    firstMs,
    totalMs,
    fusions,
    passedBy,
    written,
    details,
    cost,
    costSource,
    saved,
    prices,
    session,
  ] as const
}

export function outcomeOf(cells: OutcomeCells): OutcomeColumns {
  return {
    charged: cells[0],
    attempts: cells[1],
    input_tokens: cells[2],
    output_tokens: cells[3],
    cached_tokens: cells[4],
    reasoning_tokens: cells[5],
    usage_source: cells[6],
    error_code: cells[7],
    first_content_ms: cells[8],
    total_ms: cells[9],
    fusions: cells[10],
    passed_by: cells[11],
    cache_write_tokens: cells[12],
    usage_details: cells[13],
    cost: cells[14],
    cost_source: cells[15],
    cache_saved: cells[16],
    price_version: cells[17],
    session: cells[18],
  }
}

/** The number of cells of an outcome. */
export const outcomeLength = 19

/** The figures of an admission without their names. */
export type SignalCells = ReturnType<typeof signalCells>

export function signalCells(signals: UsageSignals) {
  const { rateLimit, rateRemaining, rateReset, quotaLimit, quotaUsed, quotaRemaining, quotaReset } = signals
  return [rateLimit, rateRemaining, rateReset, quotaLimit, quotaUsed, quotaRemaining, quotaReset] as const
}

export function signalsOf(cells: SignalCells): UsageSignals {
  return {
    rateLimit: cells[0],
    rateRemaining: cells[1],
    rateReset: cells[2],
    quotaLimit: cells[3],
    quotaUsed: cells[4],
    quotaRemaining: cells[5],
    quotaReset: cells[6],
  }
}

/** An error as sent between processes. */
export interface SentError {
  readonly name: string
  readonly message: string
  readonly code?: unknown
  readonly errcode?: unknown
  readonly facts?: ErrorFacts
}

const unavailable = { StoreUnavailable, LedgerUnavailable, TooManySaves }

export function sentError(error: unknown): SentError {
  if (error instanceof ServiceError) {
    const { cause: _, ...facts } = error.facts
    return { name: error.name, message: error.message, code: error.code, facts }
  }
  const { name, message, code, errcode } = error as Record<'name' | 'message' | 'code' | 'errcode', unknown>
  return { name: String(name), message: String(message), code, errcode }
}

/** The same error, with the class that its catchers look for. */
export function thrownError({ name, message, code, errcode, facts }: SentError): Error {
  if (name === 'ServiceError' && Object.hasOwn(errorCatalog, String(code)))
    return new ServiceError(code as ErrorCode, facts)
  if (Object.hasOwn(unavailable, name)) return new unavailable[name as keyof typeof unavailable](message)
  return Object.assign(new Error(message), { code, errcode })
}
