import { ServiceError } from '../domain/errors.ts'
import { UpstreamError } from '../domain/upstream.ts'
import { writeFor, type RequestWriter, type WrittenBody } from './backend-body.ts'
import type { Backend } from './ports.ts'
import type { LearnedLimits } from './routing/learned-limits.ts'

/** How a backend is asked a second time. */
export interface SecondTry {
  readonly written: WrittenBody
  /** Called when it answered: the next request is sent this way at once. */
  learn(): void
}

interface Refused {
  readonly backend: Backend
  /** Which of its endpoints refused. */
  readonly endpoint: Backend
  readonly writer: RequestWriter
  readonly learned: LearnedLimits
}

/** An error that came later than this may come late again: another backend is the better bet. */
const quickMs = 2_000

/**
 * Whether an error is one that is often gone at once: a plain 500, soon after the request was sent, of a backend that
 * answered well until then. Asked again it keeps the caller's model and its prompt cache; one call more is all it costs.
 */
export function isHiccup(error: unknown, elapsedMs: number, failuresInARow: number): boolean {
  if (!(error instanceof UpstreamError) || error.blames !== 'backend') return false
  const isPlain = error.status === 500 && error.outcome === 'server_error' && error.retryAfterMs === undefined
  return isPlain && elapsedMs <= quickMs && failuresInARow <= 1
}

/**
 * How to ask a backend again after it refused: without the optional fields that it does not take, or at its next endpoint
 * where the first one is not there. Undefined where its refusal names nothing of the kind that was sent.
 */
export function secondTry(error: unknown, { backend, endpoint, writer, learned }: Refused): SecondTry | undefined {
  if (!(error instanceof UpstreamError)) return undefined
  const { fields, isGeneral } = error.refusal ?? {}
  if (fields !== undefined) {
    const shorter = writer.write(endpoint, fields)
    // What was not sent cannot be left out. It is written once more: to keep it until an answer comes takes memory.
    if (shorter.length === writer.write(endpoint).length) return undefined
    const learn = (): void => {
      if (isGeneral === true) learned.learnFields(endpoint, fields)
    }
    return { written: { backend: endpoint, body: shorter }, learn }
  }
  if (error.outcome !== 'not_found' || backend.otherEndpoints === undefined) return undefined
  try {
    return { written: writeFor(backend, writer, endpoint), learn: () => learned.learnMissing(endpoint) }
  } catch (unsayable) {
    if (unsayable instanceof ServiceError) return undefined
    throw unsayable
  }
}
