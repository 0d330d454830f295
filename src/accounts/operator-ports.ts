import type { Account } from '../domain/accounts.ts'
import type { AuditRecord } from '../domain/audit.ts'
import type { Operator, OperatorRole, OperatorSession } from '../domain/operators.ts'

/** A change of who operates the service, as it ended: only `done` is written and audited. */
export type OperatorChange = 'done' | 'unknown' | 'same' | 'last_admin'

/**
 * Who operates the service, and who of them is signed in. Writes are as those of `AccountStore`: `record` is appended in
 * their transaction, and where nothing changes nothing is written.
 */
export interface OperatorStore {
  /** `taken`: an operator has the address; `full`: there are `maxOperators`. */
  addOperator(operator: Operator, maxOperators: number, record: AuditRecord): Promise<'done' | 'taken' | 'full'>
  findOperator(id: string): Promise<Operator | undefined>
  /** The active one with that address. */
  findOperatorByEmail(email: string): Promise<Operator | undefined>
  /** The active ones first, in the order in which they were made. */
  listOperators(limit: number): Promise<readonly Operator[]>
  /** `last_admin` where nobody who may make operators would be left. */
  setOperatorRole(id: string, role: OperatorRole, record: AuditRecord): Promise<OperatorChange>
  /** Ends its sessions too. */
  removeOperator(id: string, atMs: number, record: AuditRecord): Promise<OperatorChange>

  /** Adds a session; where the operator has `maxSessions` the one used longest ago ends. False where it is none any more. */
  addOperatorSession(
    session: OperatorSession,
    digest: string,
    maxSessions: number,
    record: AuditRecord,
  ): Promise<boolean>
  findOperatorSession(digest: string): Promise<OperatorSession | undefined>
  touchOperatorSession(digest: string, nowMs: number): Promise<void>
  /** Writes down that it was proven who sits there; false where the session is over. */
  confirmOperatorSession(sessionId: string, atMs: number, record: AuditRecord): Promise<boolean>
  removeOperatorSession(sessionId: string): Promise<void>
}

/** Which accounts an operator looks at. */
export interface AccountSelection {
  readonly limit: number
  /** Only those whose name has this in it, in small or capital letters. */
  readonly name?: string
  /** Only those made before this account: for the next page. */
  readonly beforeId?: string
  /** The newest so many are looked through at most. */
  readonly among: number
}

/** Accounts for whoever operates the service: the one read that is not for one account. */
export interface AccountSearchStore {
  /** Newest first. */
  searchAccounts(selection: AccountSelection): Promise<readonly Account[]>
}
