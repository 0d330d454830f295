import type { Account } from '../../domain/accounts.ts'
import type { AuditRecord } from '../../domain/audit.ts'
import type { Operator, OperatorRole, OperatorSession } from '../../domain/operators.ts'

/** The outcome of a change to operators: only `done` is written and audited. */
export type OperatorChange = 'done' | 'unknown' | 'same' | 'last_admin'

/**
 * Operators and their sessions. Writes follow the rules of `AccountStore`: `record` is appended in their transaction,
 * and a write that changes nothing writes nothing.
 */
export type OperatorStore = OperatorQueries & OperatorSessionQueries

export interface OperatorQueries {
  /** `taken`: another operator has the address; `full`: there are `maxOperators` already. */
  addOperator(operator: Operator, maxOperators: number, record: AuditRecord): Promise<'done' | 'taken' | 'full'>
  findOperator(id: string): Promise<Operator | undefined>
  /** The active operator with that address. */
  findOperatorByEmail(email: string): Promise<Operator | undefined>
  /** Active operators first, each group in order of creation. */
  listOperators(limit: number): Promise<readonly Operator[]>
  /** `last_admin` if nobody with the right to create operators would be left. */
  setOperatorRole(id: string, role: OperatorRole, record: AuditRecord): Promise<OperatorChange>
  /** Also ends the operator's sessions. */
  removeOperator(id: string, atMs: number, record: AuditRecord): Promise<OperatorChange>
}

export interface OperatorSessionQueries {
  /** Adds a session; beyond `maxSessions` the least recently used one ends. False if the operator was removed. */
  addOperatorSession(
    session: OperatorSession,
    digest: string,
    maxSessions: number,
    record: AuditRecord,
  ): Promise<boolean>
  findOperatorSession(digest: string): Promise<OperatorSession | undefined>
  touchOperatorSession(digest: string, nowMs: number): Promise<void>
  /** Records that the operator just proved their identity; false if the session has ended. */
  confirmOperatorSession(sessionId: string, atMs: number, record: AuditRecord): Promise<boolean>
  removeOperatorSession(sessionId: string): Promise<void>
}

/** Filters for the operator's account search. */
interface AccountSelection {
  readonly limit: number
  /** Accounts whose name contains this, ignoring case. */
  readonly name?: string
  /** Accounts created before this one, for the next page. */
  readonly beforeId?: string
  /** How many of the newest accounts to search at most. */
  readonly among: number
}

/** Account search for operators: the only read that spans accounts. */
export interface AccountSearchStore {
  /** Newest first. */
  searchAccounts(selection: AccountSelection): Promise<readonly Account[]>
}
