/** How long a batch on PostgreSQL waits for another node's batch with the same account. */
export const lockTimeout = '2s'

/** One schema migration. Never changed once released: a checksum verifies what was applied. */
export interface Migration {
  readonly name: string
  readonly statements: readonly string[]
  /**
   * The oldest earlier migration whose version of svc-router also works with the schema after this one: it may keep
   * running during an upgrade, and be started again to undo one. Undefined if no earlier version works.
   */
  readonly worksWith?: string
  /** Runs after the common statements, where the engines have no common syntax. */
  readonly own?: EngineStatements
}

/** The same change in each engine's syntax. */
export interface EngineStatements {
  readonly sqlite: readonly string[]
  readonly postgres: readonly string[]
}
