import type { Transaction } from 'kysely'
import type { ChainLink } from '../../domain/audit-chain.ts'
import { accountOf, type AuditEntry, type AuditEvent } from '../../domain/audit.ts'
import type { Reapplied } from '../../domain/backup.ts'
import { deleteAccountRows } from '../account-data.ts'
import type { Tables } from '../schema/schema.ts'

/** Maximum number of accounts that are named for a check by hand. */
const maxNamed = 50

type Apply<Type extends AuditEvent['type']> = (
  transaction: Transaction<Tables>,
  event: Extract<AuditEvent, { type: Type }>,
  atMs: number,
) => Promise<unknown>

/** Everything that takes access away, and plans. An account that was suspended and resumed again is not suspended. */
const effects: { readonly [Type in AuditEvent['type']]?: Apply<Type> } = {
  'account.deleted': (transaction, { accountId }, atMs) => deleteAccountRows(transaction, accountId, atMs),
  'account.suspended': (transaction, { accountId }) =>
    transaction.updateTable('accounts').set({ suspended: 1 }).where('id', '=', accountId).execute(),
  'account.resumed': (transaction, { accountId }) =>
    transaction.updateTable('accounts').set({ suspended: 0 }).where('id', '=', accountId).execute(),
  'account.plan_changed': setPlan,
  'upgrade.approved': setPlan,
  'key.revoked': (transaction, { keyId }, atMs) => endKey(transaction, keyId, 'revoked', atMs, atMs),
  'key.rotated': (transaction, { keyId, endsAtMs }, atMs) =>
    endKey(transaction, keyId, endsAtMs <= atMs ? 'revoked' : 'retiring', endsAtMs, atMs),
  'upstream.removed': (transaction, { upstreamId }) =>
    transaction.deleteFrom('upstreams').where('id', '=', upstreamId).execute(),
  'managed.switched_off': (transaction) => transaction.updateTable('managed_access').set({ switched_on: 0 }).execute(),
  'managed.resale_revoked': (transaction, { provider }, atMs) =>
    transaction
      .updateTable('resale_controls')
      .set({ revoked_at_ms: atMs })
      .where('provider', '=', provider)
      .where('revoked_at_ms', 'is', null)
      .execute(),
  'managed.withdrawn': (transaction, { requestId }, atMs) => decide(transaction, requestId, 'withdrawn', atMs),
  'managed.rejected': (transaction, { requestId }, atMs) => decide(transaction, requestId, 'rejected', atMs),
  'operator.role_changed': (transaction, { operatorId, role }) =>
    transaction.updateTable('operators').set({ role }).where('id', '=', operatorId).execute(),
  'operator.removed': (transaction, { operatorId }, atMs) =>
    transaction
      .updateTable('operators')
      .set({ state: 'removed', removed_at_ms: atMs })
      .where('id', '=', operatorId)
      .execute(),
  'backend.drained': (transaction, { backend, reason }, atMs) => hold(transaction, backend, 'drained', reason, atMs),
  'backend.quarantined': (transaction, { backend, reason }, atMs) =>
    hold(transaction, backend, 'quarantined', reason, atMs),
}

/** They restrict access, and their entries do not contain to what. */
const unnamed: ReadonlySet<string> = new Set(['email.removed', 'passkey.removed', 'key.limited'])

/**
 * Continues the restored audit log with the entries that were written after the backup, and applies those that take
 * access away (contract 37.6). `links` are verified and continue from the log's head.
 */
export async function reapplyChanges(
  transaction: Transaction<Tables>,
  links: AsyncIterable<ChainLink>,
): Promise<Reapplied> {
  let applied = 0
  let last: { readonly sequence: number; readonly hash: string } | undefined
  let entries = 0
  const lost = new Map<string, number>()
  const accountsToCheck = new Set<string>()
  for await (const { entry, hash } of links) {
    const { sequence, atMs, event } = JSON.parse(entry) as AuditEntry
    const accountId = accountOf(event)
    await transaction.insertInto('audit_log').values({ sequence, account_id: accountId, entry, hash }).execute()
    last = { sequence, hash }
    entries += 1
    const apply = (effects as Readonly<Record<string, Apply<never> | undefined>>)[event.type]
    if (event.type === 'account.deleted') accountsToCheck.delete(event.accountId)
    if (apply !== undefined) {
      await apply(transaction, event as never, atMs)
      applied += 1
      continue
    }
    lost.set(event.type, (lost.get(event.type) ?? 0) + 1)
    if (unnamed.has(event.type) && accountId !== null && accountsToCheck.size < maxNamed) accountsToCheck.add(accountId)
  }
  if (last !== undefined) await transaction.updateTable('audit_head').set(last).where('id', '=', 1).execute()
  return {
    entries,
    applied,
    lost: Object.fromEntries([...lost].toSorted(([a], [b]) => a.localeCompare(b))),
    accountsToCheck: [...accountsToCheck].toSorted(),
  }
}

function setPlan(
  transaction: Transaction<Tables>,
  { accountId, planId }: { readonly accountId: string; readonly planId: string },
): Promise<unknown> {
  return transaction.updateTable('accounts').set({ plan_id: planId }).where('id', '=', accountId).execute()
}

/** The end of a key never moves to a later time. */
async function endKey(
  transaction: Transaction<Tables>,
  keyId: string,
  state: 'revoked' | 'retiring',
  endsAtMs: number,
  atMs: number,
): Promise<void> {
  const key = await transaction
    .selectFrom('keys')
    .select('ends_at_ms')
    .where('id', '=', keyId)
    .where('state', '<>', 'revoked')
    .executeTakeFirst()
  if (key === undefined) return
  const ending =
    state === 'revoked' ? { revoked_at_ms: atMs } : { ends_at_ms: Math.min(endsAtMs, key.ends_at_ms ?? endsAtMs) }
  await transaction
    .updateTable('keys')
    .set({ state, ...ending })
    .where('id', '=', keyId)
    .execute()
}

function decide(
  transaction: Transaction<Tables>,
  requestId: string,
  state: 'withdrawn' | 'rejected',
  atMs: number,
): Promise<unknown> {
  return transaction
    .updateTable('managed_requests')
    .set({ state, decided_at_ms: atMs })
    .where('id', '=', requestId)
    .execute()
}

async function hold(
  transaction: Transaction<Tables>,
  backendId: string,
  kind: 'drained' | 'quarantined',
  reason: string,
  atMs: number,
): Promise<void> {
  const row = { backend_id: backendId, kind, at_ms: atMs, set_by: 'cli', reason }
  await transaction
    .insertInto('backend_controls')
    .values(row)
    .onConflict((conflict) => conflict.doNothing())
    .execute()
}
