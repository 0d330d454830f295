import type { ErrorCode, ErrorFacts } from '../../domain/errors.ts'
import { accessHelp } from './help-access.ts'
import { requestHelp } from './help-requests.ts'
import { serviceHelp } from './help-service.ts'

/** What an error page adds to the error catalog. Texts are Markdown. */
export interface ErrorHelp {
  /** Why it happens. */
  readonly why: string
  /** How to fix it, one step per entry. */
  readonly fix: readonly string[]
  /** Our page where it can be fixed, if there is one. */
  readonly at?: { readonly path: string; readonly name: string }
  /** Made-up values for the example. */
  readonly example: ErrorFacts
}

/** One entry per error code; a missing code is a compile error. */
export const errorHelp: Readonly<Record<ErrorCode, ErrorHelp>> = { ...accessHelp, ...requestHelp, ...serviceHelp }
