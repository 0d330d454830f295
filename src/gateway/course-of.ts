import type { AnswerContext } from '../formats/format.ts'
import type { FusedAnswer } from './fused-answer.ts'
import type { Keeping } from './keeping.ts'
import type { Admission, AnswerSink, Backend, AllowedRequest } from './ports.ts'

/** One admitted request and everything that it owns. */
export interface CourseOf {
  readonly request: AllowedRequest
  readonly accountId: string
  readonly context: AnswerContext
  readonly backends: readonly Backend[]
  readonly admission: Admission
  readonly units: number
  readonly sink: AnswerSink
  /** Milliseconds for the whole request (contract 9.6). */
  readonly totalMs: number
  /** What keeps the answer, where it is kept. */
  readonly keeping: Keeping | undefined
  /** Whether the answer's `model` is that of its backend (contract 2.31). */
  readonly reportsModel?: boolean | undefined
  /** What answers instead of one backend after the other, where the request is deliberated about. */
  readonly fused?: FusedAnswer | undefined
}
