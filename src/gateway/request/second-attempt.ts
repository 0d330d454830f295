import { ServiceError } from '../../domain/errors.ts'
import { UpstreamError } from '../../domain/upstream.ts'
import { markFields, removableFields } from '../../formats/rejections/optional-fields.ts'
import type { Backend } from '../ports.ts'
import type { LearnedLimits } from '../routing/learned-limits.ts'
import { writeFor, type RequestWriter, type BackendRequestBody } from './backend-request.ts'

/** Some servers reject one field at a time; a request is retried on one backend at most this often (contract 7.11). */
const maxRetries = 3

/** How to retry a backend. */
export interface SecondAttempt {
  readonly written: BackendRequestBody
  /** The rejected fields of this endpoint so far. */
  readonly without: readonly string[]
  /** Which retry on this backend it is, from 1. */
  readonly count: number
  /**
   * Called when the backend answered: learns what all its retries left out, so that the next request is sent that
   * way.
   */
  learn(): void
}

interface RejectedAttempt {
  readonly backend: Backend
  /** Which of its endpoints rejected the request. */
  readonly endpoint: Backend
  /** The length of the rejected body. */
  readonly sentLength: number
  readonly writer: RequestWriter
  readonly learned: LearnedLimits
  /** The rejected retry; undefined for the first request. */
  readonly earlier: SecondAttempt | undefined
}

/**
 * An error that arrived later than this may arrive as late again, so another backend is the better choice (contract
 * 7.9).
 */
const quickMs = 2_000

/**
 * Whether an error is likely to be transient: a plain 500, soon after the request was sent, from a backend that
 * answered well until then. A retry there preserves the caller's model and its prompt cache, at the cost of one call.
 */
export function isTransientFailure(error: unknown, elapsedMs: number, failuresInARow: number): boolean {
  if (!(error instanceof UpstreamError) || error.blames !== 'backend') return false
  const isPlain = error.status === 500 && error.outcome === 'server_error' && error.retryAfterMs === undefined
  return isPlain && elapsedMs <= quickMs && failuresInARow <= 1
}

function isMark(field: string): boolean {
  return markFields.some((name) => name === field)
}

/**
 * How to retry a backend that rejected the request: without the optional fields that it does not accept, with the
 * other name of the length limit, or at its next endpoint if the first one does not exist. Undefined if the rejection
 * names no field that was sent, and after 3 retries.
 */
export function secondAttempt(error: unknown, refused: RejectedAttempt): SecondAttempt | undefined {
  const { backend, endpoint, sentLength, writer, learned, earlier } = refused
  const count = (earlier?.count ?? 0) + 1
  if (!(error instanceof UpstreamError) || count > maxRetries) return undefined
  const { isGeneral, fields: rejected } = error.rejection ?? {}
  const fields = rejected && removableFields(rejected, endpoint.format)
  if (fields !== undefined) {
    const without = [...new Set([...(earlier?.without ?? []), ...fields])]
    const body = writer.write(endpoint, without)
    // A field that was not sent cannot be left out.
    if (body.length === sentLength) return undefined
    const learn = (): void => {
      earlier?.learn()
      // A mark of the caller's own can be invalid, or in the wrong place, and says nothing about those that are added.
      const hasOwnMarks = markFields.some((name) => writer.hasOwn?.(name) === true)
      const told = hasOwnMarks ? fields.filter((field) => !isMark(field)) : fields
      if (isGeneral === true && told.length > 0) learned.learnFields(endpoint, told)
    }
    return { written: { backend: endpoint, body }, without, count, learn }
  }
  if (earlier !== undefined || error.outcome !== 'not_found' || backend.otherEndpoints === undefined) return undefined
  try {
    const written = writeFor(backend, writer, endpoint)
    return { written, without: [], count, learn: () => learned.learnMissing(endpoint) }
  } catch (writeError) {
    if (writeError instanceof ServiceError) return undefined
    throw writeError
  }
}
