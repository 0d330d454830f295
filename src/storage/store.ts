import type { Kysely } from 'kysely'
import type { BillingStore } from '../accounts/billing/ports.ts'
import type { AccountStore, IdentityStore } from '../accounts/ports.ts'
import type { RequestRecord } from '../domain/requests.ts'
import type { KeyStore } from '../gateway/ports.ts'
import { addAccount, findAccount, listAccounts, setPlan } from './accounts.ts'
import { createBillingStore } from './billing-store.ts'
import { addAccountWithEmail, addEmail, findEmail, listEmails, removeEmail } from './emails.ts'
import { addKey, findByDigest, findKey, listKeys, revokeKey, rotateKey } from './keys.ts'
import { addProof, countProofs, findProof, findProofByLink, tryCode, useLink } from './proofs.ts'
import { deleteRequestsBefore, findRequest, listRequests, type RequestSelection, usedUnits } from './requests.ts'
import { readRevision } from './revision.ts'
import type { Tables } from './schema.ts'
import { addSession, findSession, listSessions, removeSession, removeSessions, touchSession } from './sessions.ts'
import { addUpstream, listUpstreams, removeUpstream } from './upstreams.ts'

/** Reads of what the ledger wrote, and its retention. */
interface RequestStore {
  findRequest(id: string): Promise<RequestRecord | undefined>
  listRequests(selection: RequestSelection): Promise<readonly RequestRecord[]>
  usedUnits(accountId: string, periodId: string): Promise<number>
  deleteRequestsBefore(timeMs: number, limit: number): Promise<number>
}

/** Everything that is kept, on either engine. `close` ends the database that it was made from. */
export interface Store extends AccountStore, IdentityStore, KeyStore, RequestStore {
  readonly billing: BillingStore
  close(): Promise<void>
}

/** Joins the queries of one open database to the ports that they serve. */
export function createStore(db: Kysely<Tables>): Store {
  return {
    addAccount: (account) => addAccount(db, account),
    findAccount: (id) => findAccount(db, id),
    listAccounts: (limit) => listAccounts(db, limit),
    setPlan: (accountId, planId) => setPlan(db, accountId, planId),
    addKey: (key, digest, maxKeys) => addKey(db, key, digest, maxKeys),
    findKey: (keyId) => findKey(db, keyId),
    listKeys: (accountId, limit) => listKeys(db, accountId, limit),
    rotateKey: (oldKeyId, nowMs, endsAtMs, next, nextDigest) =>
      rotateKey(db, oldKeyId, nowMs, endsAtMs, next, nextDigest),
    revokeKey: (keyId, nowMs) => revokeKey(db, keyId, nowMs),
    addUpstream: (upstream, maxUpstreams) => addUpstream(db, upstream, maxUpstreams),
    listUpstreams: (accountId) => listUpstreams(db, accountId),
    removeUpstream: (accountId, upstreamId) => removeUpstream(db, accountId, upstreamId),
    addAccountWithEmail: (account, address) => addAccountWithEmail(db, account, address),
    addEmail: (email, maxEmails) => addEmail(db, email, maxEmails),
    findEmail: (address) => findEmail(db, address),
    listEmails: (accountId) => listEmails(db, accountId),
    removeEmail: (accountId, address) => removeEmail(db, accountId, address),
    addProof: (proof, digests, forgetBeforeMs) => addProof(db, proof, digests, forgetBeforeMs),
    findProof: (proofId) => findProof(db, proofId),
    findProofByLink: (linkDigest) => findProofByLink(db, linkDigest),
    countProofs: (address, sinceMs) => countProofs(db, address, sinceMs),
    tryCode: (proofId, codeDigest, maxTries, nowMs) => tryCode(db, proofId, codeDigest, maxTries, nowMs),
    useLink: (linkDigest, nowMs) => useLink(db, linkDigest, nowMs),
    addSession: (session, digest, maxSessions) => addSession(db, session, digest, maxSessions),
    findSession: (digest) => findSession(db, digest),
    touchSession: (digest, nowMs) => touchSession(db, digest, nowMs),
    listSessions: (accountId) => listSessions(db, accountId),
    removeSession: (accountId, sessionId) => removeSession(db, accountId, sessionId),
    removeSessions: (accountId) => removeSessions(db, accountId),
    find: (digest) => findByDigest(db, digest),
    revision: () => readRevision(db),
    findRequest: (id) => findRequest(db, id),
    listRequests: (selection) => listRequests(db, selection),
    usedUnits: (accountId, periodId) => usedUnits(db, accountId, periodId),
    deleteRequestsBefore: (timeMs, limit) => deleteRequestsBefore(db, timeMs, limit),
    billing: createBillingStore(db),
    close: () => db.destroy(),
  }
}
