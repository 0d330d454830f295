import type { Kysely, Transaction } from 'kysely'
import type { AuditStore, StoredLink } from '../accounts/ports.ts'
import { chainHash, type ChainPosition } from '../domain/audit-chain.ts'
import { accountOf, type AuditEntry, type AuditRecord, writeEntry } from '../domain/audit.ts'
import { defineStore } from './define-store.ts'
import type { Tables } from './schema/schema.ts'

/** Rolls back the transaction of a proof, which must leave no trace. */
class Proved extends Error {}

/**
 * Appends an event inside the transaction of the change it describes (contract 25.1). The head's row is the lock that
 * serializes the appends of all nodes until their transactions end.
 */
export async function appendEntry(transaction: Transaction<Tables>, record: AuditRecord): Promise<ChainPosition> {
  const before = await transaction
    .updateTable('audit_head')
    .set((row) => ({ sequence: row('sequence', '+', 1) }))
    .where('id', '=', 1)
    .returning(['sequence', 'hash'])
    .executeTakeFirstOrThrow()
  const { sequence } = before
  const entry = writeEntry({ sequence, ...record })
  const hash = chainHash(before.hash, entry)
  const row = { sequence, account_id: accountOf(record.event), entry, hash }
  await transaction.insertInto('audit_log').values(row).execute()
  await transaction.updateTable('audit_head').set({ hash }).where('id', '=', 1).execute()
  return { sequence, hash }
}

/** The audit log and its checkpoints. */
export const auditStore = defineStore<AuditStore>({
  appendAudit(db, record) {
    if (db.isTransaction) return appendEntry(db as Transaction<Tables>, record)
    return db.transaction().execute((transaction) => appendEntry(transaction, record))
  },
  auditHead: readHead,

  readAudit: readLinks,

  async listAudit(db, selection) {
    const { accountId, type, beforeSequence, fromSequence, limit } = selection
    let query = db.selectFrom('audit_log').select('entry').orderBy('sequence', 'desc').limit(limit)
    if (accountId !== undefined) query = query.where('account_id', '=', accountId)
    if (beforeSequence !== undefined) query = query.where('sequence', '<', beforeSequence)
    if (fromSequence !== undefined) query = query.where('sequence', '>=', fromSequence)
    // As `writeEntry` writes it: no other part of an entry can match, since no field contains a quote.
    if (type !== undefined) query = query.where('entry', 'like', `%"event":{"type":"${type}"%`)
    const rows = await query.execute()
    return rows.map(({ entry }) => JSON.parse(entry) as AuditEntry)
  },

  async addCheckpoint(db, checkpoint) {
    const { sequence, hash, atMs, keyId, mac } = checkpoint
    await db.transaction().execute(async (transaction) => {
      // The head's lock serializes concurrent calls.
      await transaction
        .updateTable('audit_head')
        .set((row) => ({ id: row.ref('id') }))
        .execute()
      const existing = await transaction
        .selectFrom('audit_checkpoints')
        .select('sequence')
        .where('sequence', '=', sequence)
        .where('key_id', '=', keyId)
        .executeTakeFirst()
      if (existing !== undefined) return
      await transaction
        .insertInto('audit_checkpoints')
        .values({ sequence, hash, at_ms: atMs, key_id: keyId, mac })
        .execute()
    })
  },

  async listCheckpoints(db, limit) {
    const rows = await db
      .selectFrom('audit_checkpoints')
      .selectAll()
      .orderBy('sequence', 'desc')
      .orderBy('at_ms', 'desc')
      .limit(limit)
      .execute()
    return rows.map(({ sequence, hash, at_ms: atMs, key_id: keyId, mac }) => ({ sequence, hash, atMs, keyId, mac }))
  },

  /** Works in a transaction that is rolled back. */
  async proveAudit(db, record) {
    try {
      await db.transaction().execute(async (transaction) => {
        const before = await readHead(transaction)
        const last = await readLinks(transaction, before.sequence - 1, 2)
        if (last.length > 1 || (last[0]?.hash ?? '') !== before.hash)
          throw new Error('the head of the audit log is not its last entry')
        const { sequence, hash } = await appendEntry(transaction, record)
        const [written] = await readLinks(transaction, sequence - 1, 1)
        if (written?.hash !== hash || hash !== chainHash(before.hash, written.entry))
          throw new Error('an event read back from the audit log differs from what was written')
        const changing = transaction.updateTable('audit_log').set({ hash }).where('sequence', '=', sequence)
        const refused = await changing.execute().then(
          () => false,
          () => true,
        )
        if (!refused) throw new Error('entries of the audit log can be changed')
        throw new Proved()
      })
    } catch (error) {
      if (!(error instanceof Proved)) throw error
    }
  },
})

/** The last entry according to the head's row. */
function readHead(db: Kysely<Tables>): Promise<ChainPosition> {
  return db.selectFrom('audit_head').select(['sequence', 'hash']).where('id', '=', 1).executeTakeFirstOrThrow()
}

/** Stored entries after one sequence number, in order. */
async function readLinks(db: Kysely<Tables>, afterSequence: number, limit: number): Promise<readonly StoredLink[]> {
  const rows = await db
    .selectFrom('audit_log')
    .selectAll()
    .where('sequence', '>', afterSequence)
    .orderBy('sequence')
    .limit(limit)
    .execute()
  return rows.map(({ sequence, account_id: accountId, entry, hash }) => ({ sequence, accountId, entry, hash }))
}
