import type { BackupManifest, Reapplied } from '../domain/backup.ts'
import type { AuditVerdict } from './audit/audit.ts'

export interface BackupOptions {
  /** A new file, or an existing folder, in which the file is named after the time. */
  readonly target: string
  /** How many backups stay in that folder. Default: all. */
  readonly keep: number | undefined
}

/** A verified backup. */
export interface CheckedBackup {
  readonly manifest: BackupManifest
  readonly audit: AuditVerdict
  /** How many accounts' months count fewer units than their records charged: 0 in a sound ledger. */
  readonly uncounted: number
}

export interface TakenBackup extends CheckedBackup {
  readonly path: string
  readonly bytes: number
  /** The names of older backups that were deleted. */
  readonly deleted: readonly string[]
}

export interface RestoreOptions {
  readonly file: string
  /** An exported audit log with the changes that were made after the backup; undefined to lose them. */
  readonly since: string | undefined
  /** Whether to accept a backup that is not proven to be what this service wrote. */
  readonly trust: boolean
}

export interface RestoredBackup extends CheckedBackup {
  readonly reapplied: Reapplied
}

/** All data, after it was copied from one engine to the other and compared. */
export interface MovedData {
  readonly tables: BackupManifest['tables']
  /** Where the previous SQLite database is; undefined if the data came from PostgreSQL. */
  readonly left: string | undefined
}

/** Whether a backup contains an unbroken audit log and a ledger that counts everything it charged. */
export function isSound({ audit, uncounted }: Pick<CheckedBackup, 'audit' | 'uncounted'>): boolean {
  return audit.state !== 'broken' && uncounted === 0
}
