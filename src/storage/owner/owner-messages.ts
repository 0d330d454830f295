import type { KeyRate } from '../../domain/account-meter.ts'
import { type ErrorCode, errorCatalog, type ErrorFacts, ServiceError } from '../../domain/errors.ts'
import type { Plan } from '../../domain/plans.ts'
import type { RequestOpening } from '../../domain/requests.ts'
import { StoreUnavailable } from '../../runtime/store-unavailable.ts'
import { LedgerUnavailable } from '../ledger/ledger-unavailable.ts'
import type { OutcomeColumns } from '../requests.ts'
import { TooManySaves } from '../response-store.ts'

/** The limits that a request is admitted under. */
interface Limits {
  readonly plan: Plan
  readonly rate: KeyRate | undefined
}

/** What a worker asks the owner; each gets exactly one `Answer`. */
export type Question =
  | ({ readonly do: 'admit'; readonly opening: RequestOpening } & Limits)
  | ({ readonly do: 'signals'; readonly accountId: string } & Limits)
  /** Whether everything recorded for the request is on disk; answered when it is. */
  | { readonly do: 'durable'; readonly id: string }
  | { readonly do: 'health' }
  /** Answered when everything recorded so far is on disk. */
  | { readonly do: 'flush' }
  /** A method of one of the stores. */
  | { readonly do: 'store'; readonly noun: string; readonly method: string; readonly args: readonly unknown[] }

/** What a worker tells the owner of an admitted request. */
export type Report =
  /** `dueMark`: see `LedgerJournal.settle`. */
  | { readonly do: 'settle'; readonly id: string; readonly outcome: OutcomeColumns; readonly dueMark: number | null }
  /** The mark of a running stream or of a due answer is written. */
  | { readonly do: 'delivered'; readonly id: string }
  /** A due answer will not be delivered. */
  | { readonly do: 'undelivered'; readonly id: string }

/** A question with the number that its answer names. */
export type Call = Question & { readonly call: number }
export type ToOwner = Call | Report

export type Answer =
  | { readonly call: number; readonly value: unknown }
  | { readonly call: number; readonly error: SentError }

/** Whether requests can be recorded, and what of this worker waits for the database. */
export interface OwnerHealth {
  readonly isHealthy: boolean
  readonly queues: Readonly<Record<string, number>>
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
