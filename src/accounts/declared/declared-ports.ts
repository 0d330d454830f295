import type { StoredKey } from '../../domain/accounts.ts'
import type { AuditRecord } from '../../domain/audit.ts'
import type { SettingKind, StoredSetting } from '../../domain/declared.ts'
import type { BackendControlStore } from '../backends/backend-ports.ts'
import type { AccountDataStore, AccountStore, AuditStore, BudgetQueries } from '../ports.ts'

/** An account that a file declares or, with a name, one of its keys. */
interface DeclaredMark {
  readonly accountId: string
  /** Empty for the account itself. A key keeps its mark when it is rotated. */
  readonly keyName: string
}

/** What a file declares and was stored before. */
export interface DeclaredMarks {
  readonly settings: readonly Pick<StoredSetting, 'kind' | 'name'>[]
  readonly objects: readonly DeclaredMark[]
}

export interface DeclaredQueries {
  /** By kind and name. */
  listSettings(): Promise<readonly StoredSetting[]>
  /** Adds or replaces a setting. */
  putSetting(setting: StoredSetting, records: readonly AuditRecord[]): Promise<boolean>
  /** False if it is not stored. */
  deleteSetting(kind: SettingKind, name: string, record: AuditRecord): Promise<boolean>
  /** The active keys of all accounts, at most `limit`. */
  listWorkingKeys(nowMs: number, limit: number): Promise<readonly StoredKey[]>
  listDeclared(): Promise<readonly DeclaredMark[]>
  /** Records that a file declares these objects. Changes nothing else, so neither the revision nor the audit log. */
  markDeclared(marks: DeclaredMarks): Promise<void>
  unmarkKey(accountId: string, keyName: string): Promise<void>
}

/** Everything that an apply reads and changes. */
export type ChangeStore = AccountStore &
  BudgetQueries &
  BackendControlStore &
  DeclaredQueries & {
    /** Incremented by every change. */
    revision(): Promise<number>
  }

/** The same inside a transaction. */
export type TransactionStore = ChangeStore & AccountDataStore & Pick<AuditStore, 'appendAudit'>

export interface DeclaredStore {
  /**
   * Runs `work` in one transaction if nothing changed since this revision. Otherwise returns `stale`; then, and if `work`
   * throws, nothing is written.
   */
  atRevision<Value>(revision: number, work: (store: TransactionStore) => Promise<Value>): Promise<Value | 'stale'>
}
