import type { AuditRecord } from '../src/domain/audit.ts'

/** The record of some change, for stores that keep one with each: these tests are about the change itself. */
export function someRecord(atMs = 1): AuditRecord {
  return { actor: { kind: 'cli' }, atMs, event: { type: 'account.resumed', accountId: 'acc_1' } }
}
