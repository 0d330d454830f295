import type { ProofQueries } from '../accounts/ports.ts'
import type { ProofPurpose, SignInProof } from '../domain/identity.ts'
import { defineStore } from './define-store.ts'
import type { ProofRow } from './schema/schema-identity.ts'

/** Sign-in proofs: emailed codes and links. */
export const proofStore = defineStore<ProofQueries>({
  async addProof(db, proof, digests, forgetBeforeMs) {
    await db.transaction().execute(async (transaction) => {
      await transaction.deleteFrom('sign_in_proofs').where('expires_at_ms', '<', Math.floor(forgetBeforeMs)).execute()
      await transaction
        .insertInto('sign_in_proofs')
        .values({
          id: proof.id,
          purpose: proof.purpose,
          address: proof.address,
          account_id: proof.accountId,
          operator_id: proof.forOperator?.operatorId ?? null,
          operator_session_id: proof.forOperator?.sessionId ?? null,
          code_digest: digests.code,
          link_digest: digests.link,
          network: digests.network ?? null,
          tries: 0,
          created_at_ms: Math.floor(proof.createdAtMs),
          expires_at_ms: Math.floor(proof.expiresAtMs),
          used_at_ms: null,
        })
        .execute()
    })
  },

  async findProof(db, proofId) {
    const row = await db.selectFrom('sign_in_proofs').selectAll().where('id', '=', proofId).executeTakeFirst()
    return row === undefined ? undefined : readProof(row)
  },

  async findProofByLink(db, linkDigest) {
    const row = await db
      .selectFrom('sign_in_proofs')
      .selectAll()
      .where('link_digest', '=', linkDigest)
      .where('used_at_ms', 'is', null)
      .executeTakeFirst()
    return row === undefined ? undefined : readProof(row)
  },

  async countProofs(db, { address, network }, sinceMs, upTo) {
    let query = db
      .selectFrom('sign_in_proofs')
      .select((row) => [row.fn.countAll<number>().as('count'), row.fn.min<number | null>('created_at_ms').as('first')])
      .where('created_at_ms', '>', Math.floor(sinceMs))
    if (address !== undefined) query = query.where('address', '=', address)
    if (network !== undefined) query = query.where('network', '=', network)
    if (upTo !== undefined) {
      const atMs = Math.floor(upTo.createdAtMs)
      query = query.where((row) =>
        row.or([row('created_at_ms', '<', atMs), row.and([row('created_at_ms', '=', atMs), row('id', '<=', upTo.id)])]),
      )
    }
    const { count, first } = await query.executeTakeFirstOrThrow()
    return { count, firstAtMs: first }
  },

  /** Each step is one statement that repeats its preconditions. */
  async tryCode(db, proofId, codeDigest, maxTries, nowMs) {
    const tried = await db
      .updateTable('sign_in_proofs')
      .set((row) => ({ tries: row('tries', '+', 1) }))
      .where('id', '=', proofId)
      .where('used_at_ms', 'is', null)
      .where('expires_at_ms', '>', Math.floor(nowMs))
      .where('tries', '<', maxTries)
      .executeTakeFirstOrThrow()
    if (tried.numUpdatedRows === 0n) return 'refused'
    const used = await db
      .updateTable('sign_in_proofs')
      .set({ used_at_ms: Math.floor(nowMs) })
      .where('id', '=', proofId)
      .where('used_at_ms', 'is', null)
      .where('code_digest', '=', codeDigest)
      .executeTakeFirstOrThrow()
    return used.numUpdatedRows === 0n ? 'wrong' : 'used'
  },

  async useLink(db, linkDigest, nowMs) {
    const used = await db
      .updateTable('sign_in_proofs')
      .set({ used_at_ms: Math.floor(nowMs) })
      .where('link_digest', '=', linkDigest)
      .where('used_at_ms', 'is', null)
      .where('expires_at_ms', '>', Math.floor(nowMs))
      .executeTakeFirstOrThrow()
    if (used.numUpdatedRows === 0n) return undefined
    const row = await db
      .selectFrom('sign_in_proofs')
      .selectAll()
      .where('link_digest', '=', linkDigest)
      .executeTakeFirstOrThrow()
    return readProof(row)
  },
})

/** Converts a row to a proof. */
export function readProof(row: ProofRow): SignInProof {
  return {
    id: row.id,
    purpose: row.purpose as ProofPurpose,
    address: row.address,
    accountId: row.account_id,
    createdAtMs: row.created_at_ms,
    expiresAtMs: row.expires_at_ms,
    ...(row.operator_id === null
      ? {}
      : { forOperator: { operatorId: row.operator_id, sessionId: row.operator_session_id } }),
  }
}
