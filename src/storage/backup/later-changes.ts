import type { Transaction } from 'kysely'
import type { ChainLink } from '../../domain/audit-chain.ts'
import { accountOf, type AuditEntry, type AuditEvent } from '../../domain/audit.ts'
import type { Reapplied } from '../../domain/backup.ts'
import { type OperatorRole, operatorRoles } from '../../domain/operators.ts'
import { deleteAccountRows } from '../account-data.ts'
import type { Tables } from '../schema/schema.ts'

/** Maximum number of accounts that are named for a check by hand. */
const maxNamed = 50

type Apply<Type extends AuditEvent['type']> = (
  transaction: Transaction<Tables>,
  event: Extract<AuditEvent, { type: Type }>,
  atMs: number,
) => Promise<unknown>

/**
 * What an entry does again. `lost`: it added something that the entry does not contain. `unnamed`: it took something away
 * that the entry does not name. `nothing`: it changed no data. An account that was suspended and resumed is not suspended.
 */
const effects: { readonly [Type in AuditEvent['type']]: Apply<Type> | 'lost' | 'unnamed' | 'nothing' } = {
  'account.created': 'lost',
  'account.plan_changed': setPlan,
  'account.suspended': (transaction, { accountId }) => suspend(transaction, accountId, 1),
  'account.resumed': (transaction, { accountId }) => suspend(transaction, accountId, 0),
  'account.deleted': (transaction, { accountId }, atMs) => deleteAccountRows(transaction, accountId, atMs),
  'key.created': 'lost',
  'key.rotated': (transaction, { keyId, endsAtMs }, atMs) =>
    endKey(transaction, keyId, endsAtMs <= atMs ? 'revoked' : 'retiring', endsAtMs, atMs),
  'key.limited': 'unnamed',
  'key.revoked': (transaction, { keyId }, atMs) => endKey(transaction, keyId, 'revoked', atMs, atMs),
  'budget.set': 'lost',
  'budget.removed': (transaction, { budgetId }) =>
    transaction.deleteFrom('budgets').where('id', '=', budgetId).execute(),
  'email.added': 'lost',
  'email.removed': 'unnamed',
  'passkey.added': 'lost',
  'passkey.removed': 'unnamed',
  'upstream.added': 'lost',
  'upstream.removed': (transaction, { upstreamId }) =>
    transaction.deleteFrom('upstreams').where('id', '=', upstreamId).execute(),
  'webhook.added': 'lost',
  // The restored secret may be one that somebody else knows.
  'webhook.secret_rotated': (transaction, { webhookId }) => removeWebhook(transaction, webhookId),
  'webhook.removed': (transaction, { webhookId }) => removeWebhook(transaction, webhookId),
  'upgrade.requested': 'lost',
  'upgrade.withdrawn': (transaction, { requestId }, atMs) =>
    decide(transaction, 'upgrade_requests', requestId, 'withdrawn', atMs),
  'upgrade.approved': async (transaction, event, atMs) => {
    await decide(transaction, 'upgrade_requests', event.requestId, 'approved', atMs)
    await setPlan(transaction, event)
  },
  'upgrade.rejected': (transaction, { requestId }, atMs) =>
    decide(transaction, 'upgrade_requests', requestId, 'rejected', atMs),
  'managed.switched_on': 'lost',
  'managed.switched_off': (transaction) => transaction.updateTable('managed_access').set({ switched_on: 0 }).execute(),
  'managed.resale_recorded': 'lost',
  'managed.resale_revoked': (transaction, { provider }, atMs) =>
    transaction
      .updateTable('resale_controls')
      .set({ revoked_at_ms: atMs })
      .where('provider', '=', provider)
      .where('revoked_at_ms', 'is', null)
      .execute(),
  'managed.requested': 'lost',
  'managed.withdrawn': (transaction, { requestId }, atMs) =>
    decide(transaction, 'managed_requests', requestId, 'withdrawn', atMs),
  'managed.approved': 'lost',
  'managed.rejected': (transaction, { requestId }, atMs) =>
    decide(transaction, 'managed_requests', requestId, 'rejected', atMs),
  'managed.opened': 'nothing',
  'managed.closed': 'nothing',
  'operator.created': 'lost',
  'operator.role_changed': lowerRole,
  'operator.removed': (transaction, { operatorId }, atMs) =>
    transaction
      .updateTable('operators')
      .set({ state: 'removed', removed_at_ms: atMs })
      .where('id', '=', operatorId)
      .execute(),
  'operator.signed_in': 'nothing',
  'operator.stepped_up': 'nothing',
  'backend.drained': (transaction, { backend, reason }, atMs) => hold(transaction, backend, 'drained', reason, atMs),
  'backend.undrained': 'lost',
  'backend.quarantined': (transaction, { backend, reason }, atMs) =>
    hold(transaction, backend, 'quarantined', reason, atMs),
  'backend.released': 'lost',
  'setting.changed': 'lost',
  'setting.declared': 'lost',
  'setting.removed': 'lost',
  'settings.applied': 'nothing',
  'admin_token.created': 'lost',
  'admin_token.revoked': (transaction, { tokenId }, atMs) =>
    transaction.updateTable('admin_tokens').set({ revoked_at_ms: atMs }).where('id', '=', tokenId).execute(),
  'incident.opened': 'lost',
  'incident.updated': 'lost',
  'incident.resolved': 'lost',
  'ticket.closed': 'lost',
  'ticket.reopened': 'lost',
  'backup.restored': 'nothing',
  'audit.proved': 'nothing',
}

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
    // A newer version may have written events that this one does not know.
    const effect = (effects as Readonly<Record<string, Apply<never> | string | undefined>>)[event.type] ?? 'lost'
    if (event.type === 'account.deleted') accountsToCheck.delete(event.accountId)
    if (effect === 'nothing') continue
    if (typeof effect === 'function') {
      await effect(transaction, event as never, atMs)
      applied += 1
      continue
    }
    lost.set(event.type, (lost.get(event.type) ?? 0) + 1)
    if (effect === 'unnamed' && accountId !== null && accountsToCheck.size < maxNamed) accountsToCheck.add(accountId)
  }
  if (last !== undefined) await transaction.updateTable('audit_head').set(last).where('id', '=', 1).execute()
  return {
    entries,
    applied,
    lost: Object.fromEntries([...lost].toSorted(([a], [b]) => a.localeCompare(b))),
    accountsToCheck: [...accountsToCheck].toSorted(),
  }
}

function removeWebhook(transaction: Transaction<Tables>, webhookId: string): Promise<unknown> {
  return transaction.deleteFrom('webhooks').where('id', '=', webhookId).execute()
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

function suspend(transaction: Transaction<Tables>, accountId: string, suspended: 0 | 1): Promise<unknown> {
  return transaction.updateTable('accounts').set({ suspended }).where('id', '=', accountId).execute()
}

/** Never gives more rights: nothing but its own chain proves what follows the backup's head. */
async function lowerRole(
  transaction: Transaction<Tables>,
  { operatorId, role }: { readonly operatorId: string; readonly role: OperatorRole },
): Promise<void> {
  const higher = operatorRoles.slice(operatorRoles.indexOf(role) + 1)
  if (higher.length === 0) return
  await transaction
    .updateTable('operators')
    .set({ role })
    .where('id', '=', operatorId)
    .where('role', 'in', higher)
    .execute()
}

function decide(
  transaction: Transaction<Tables>,
  table: 'upgrade_requests' | 'managed_requests',
  requestId: string,
  state: 'withdrawn' | 'approved' | 'rejected',
  atMs: number,
): Promise<unknown> {
  return transaction.updateTable(table).set({ state, decided_at_ms: atMs }).where('id', '=', requestId).execute()
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
