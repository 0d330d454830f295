import type { AuditRecord } from '../src/domain/audit.ts'

/** An arbitrary audit record, for stores that require one with each change. The tests are about the change itself. */
export function someRecord(atMs = 1): AuditRecord {
  return { actor: { kind: 'cli' }, atMs, event: { type: 'account.resumed', accountId: 'acc_1' } }
}
