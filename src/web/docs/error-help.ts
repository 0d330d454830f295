import type { ErrorCode, ErrorFacts } from '../../domain/errors.ts'
import { accessHelp } from './help-access.ts'
import { requestHelp } from './help-requests.ts'
import { serviceHelp } from './help-service.ts'

/** What the page of an error says besides what the table of errors says already. Texts are Markdown. */
export interface ErrorHelp {
  /** Why it happens. */
  readonly why: string
  /** What mends it, one step each. */
  readonly mend: readonly string[]
  /** The page that mends it, if one of ours does. */
  readonly at?: { readonly path: string; readonly name: string }
  /** What fills the example: made up. */
  readonly example: ErrorFacts
}

/** One entry for each code of the table: a code without one does not compile. */
export const errorHelp: Readonly<Record<ErrorCode, ErrorHelp>> = { ...accessHelp, ...requestHelp, ...serviceHelp }
