import { canonicalJson, fingerprint } from '../../domain/declared.ts'
import type { FieldChange } from '../settings.ts'

export type ChangedKind = 'plan' | 'backend' | 'profile' | 'account' | 'key' | 'budget'

/** One object that differs from the file. */
export interface Change {
  readonly action: 'create' | 'update' | 'delete'
  readonly kind: ChangedKind
  /** Where the file has it, such as `['accounts', 'acme', 'keys', 'ci']`. */
  readonly path: readonly string[]
  /** What differs. */
  readonly fields: readonly FieldChange[]
  /** Set if so far only the configuration has the object, with the file's values: then it is stored as it is. */
  readonly source?: 'configuration'
}

/** Something in force that the file does not declare. It stays, unless `--prune` deletes it. */
export interface Undeclared {
  readonly path: readonly string[]
  /** Whether an earlier file declared it, so that `--prune` would delete it. */
  readonly isManaged: boolean
  /** What operators decided about it, such as `drained`. */
  readonly note?: string
}

/** Why a file cannot be applied: the path of the cause, and what to do. */
export interface DeclarationProblem {
  readonly path: readonly string[]
  readonly what: string
  readonly fix: string
}

/** The maximum number of reported problems. */
const maxProblems = 100

/** A file contradicts itself or the service (contract 38.4). Carries the first 100 problems. */
export class DeclarationError extends Error {
  override readonly name = 'DeclarationError'
  readonly problems: readonly DeclarationProblem[]

  constructor(problems: readonly DeclarationProblem[]) {
    super(
      problems
        .slice(0, maxProblems)
        .map(({ path, what }) => `${path.join('.')}: ${what}`)
        .join('\n'),
    )
    this.problems = problems.slice(0, maxProblems)
  }
}

/** Names a list of changes. The same file against the same state has the same id. */
export function planIdOf(changes: readonly Change[]): string {
  return fingerprint(
    changes
      .map(({ action, path, fields }) =>
        [
          action,
          ...path,
          ...fields.map(({ field, before, after }) => canonicalJson([field, before ?? null, after ?? null])),
        ]
          .map((part) => JSON.stringify(part))
          .join(' '),
      )
      .join('\n'),
  )
}
