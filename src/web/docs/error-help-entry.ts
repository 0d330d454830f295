import type { ErrorFacts } from '../../domain/errors.ts'

/** What an error page adds to the error catalog. Texts are Markdown. */
export interface ErrorHelp {
  /** Why it happens. */
  readonly why: string
  /** How to fix it, one step per entry. */
  readonly fix: readonly string[]
  /** Our page where it can be fixed, if there is one (contract 20.5). */
  readonly at?: { readonly path: string; readonly name: string }
  /** Made-up values for the example. */
  readonly example: ErrorFacts
}
