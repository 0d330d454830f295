import type { Kysely } from 'kysely'
import type { BackendControlStore } from '../accounts/backends/backend-ports.ts'
import type { BillingStore } from '../accounts/billing/ports.ts'
import type {
  AccountStore,
  ActivityStore,
  AuditStore,
  AccountDataStore,
  IdentityStore,
  ManagedAccessStore,
} from '../accounts/ports.ts'
import type { AccountSearchStore, OperatorStore } from '../accounts/operators/operator-ports.ts'
import type { SupportStore } from '../accounts/support/support-ports.ts'
import type { StatusStore } from '../accounts/status/status-ports.ts'
import type { SealedProviderError } from '../domain/provider-error.ts'
import type { RefusedHour } from '../domain/refused-requests.ts'
import type { RequestRecord } from '../domain/requests.ts'
import type { KeyStore } from '../gateway/ports.ts'
import { searchAccounts } from './account-search.ts'
import { addAccount, findAccount, listAccounts, setPlan, setSuspended } from './accounts.ts'
import { addUpUsage, findActivity, listActivity } from './activity.ts'
import { addCheckpoint, append, listCheckpoints, listEntries, proveAppend, readHead, readLinks } from './audit.ts'
import { holdBackend, listBackendControls, releaseBackend, undrainBackend } from './backend-controls.ts'
import { createBillingStore } from './billing-store.ts'
import { addAccountWithEmail, addEmail, findEmail, listEmails, removeEmail } from './emails.ts'
import { deleteAccount, listOwnTickets, listProofs, listUsedUnits } from './account-data.ts'
import { addIncident, addIncidentUpdate, listIncidents } from './incidents.ts'
import { addKey, findByDigest, findKey, findKeyByDigest, limitKey, listKeys, revokeKey, rotateKey } from './keys.ts'
import {
  addRequest,
  findManagedRequest,
  hasApproved,
  listManagedRequests,
  readManagedAccess,
  recordResale,
  revokeResale,
  stepRequest,
  switchManagedAccess,
} from './managed-access.ts'
import { createOperatorStore } from './operator-sessions.ts'
import { addPasskey, findPasskey, listPasskeys, removePasskey, useChallenge, usePasskey } from './passkeys.ts'
import { addProof, countProofs, findProof, findProofByLink, tryCode, useLink } from './proofs.ts'
import {
  deleteRequestsBefore,
  findRequest,
  lastKeyUses,
  listRequests,
  type RequestSelection,
  usedUnits,
} from './requests.ts'
import { readRevision } from './revision.ts'
import type { Tables } from './schema/schema.ts'
import { addSession, findSession, listSessions, removeSession, removeSessions, touchSession } from './sessions.ts'
import { addTicket, closeTicket, countTickets, findTicket, listTickets } from './tickets.ts'
import { addUptime, listUptime } from './uptime.ts'
import { addProviderErrors, deleteProviderErrorsBefore, listProviderErrors } from './provider-errors.ts'
import { addRefused, deleteRefusedBefore, listRefusedHours, sumRefused } from './refused-requests.ts'
import { addUpstream, listUpstreams, removeUpstream } from './upstreams.ts'

/** Reads the ledger's records, and applies their retention. */
interface RequestStore {
  findRequest(id: string): Promise<RequestRecord | undefined>
  listRequests(selection: RequestSelection): Promise<readonly RequestRecord[]>
  usedUnits(accountId: string, periodId: string): Promise<number>
  lastKeyUses(accountId: string, among: number): Promise<ReadonlyMap<string, number>>
  deleteRequestsBefore(timeMs: number, limit: number): Promise<number>
  addProviderErrors(errors: readonly SealedProviderError[]): Promise<void>
  listProviderErrors(requestId: string, accountId: string | null): Promise<readonly SealedProviderError[]>
  deleteProviderErrorsBefore(timeMs: number, limit: number): Promise<number>
  addRefused(hours: readonly RefusedHour[]): Promise<void>
  deleteRefusedBefore(timeMs: number, limit: number): Promise<number>
}

/** All storage, on either engine. `close` closes the underlying database. */
export interface Store
  extends
    AccountStore,
    AccountSearchStore,
    ActivityStore,
    AuditStore,
    BackendControlStore,
    AccountDataStore,
    IdentityStore,
    ManagedAccessStore,
    KeyStore,
    RequestStore,
    StatusStore,
    SupportStore {
  readonly billing: BillingStore
  readonly operators: OperatorStore
  close(): Promise<void>
}

/** Implements the storage ports with the queries of one open database. */
export function createStore(db: Kysely<Tables>): Store {
  return {
    addAccount: (account, record) => addAccount(db, account, record),
    findAccount: (id) => findAccount(db, id),
    listAccounts: (limit) => listAccounts(db, limit),
    searchAccounts: (selection) => searchAccounts(db, selection),
    setPlan: (accountId, planId, record) => setPlan(db, accountId, planId, record),
    setSuspended: (accountId, suspended, record) => setSuspended(db, accountId, suspended, record),
    addKey: (key, digest, maxKeys, record) => addKey(db, key, digest, maxKeys, record),
    findKey: (keyId) => findKey(db, keyId),
    findKeyByDigest: (digest) => findKeyByDigest(db, digest),
    listKeys: (accountId, limit) => listKeys(db, accountId, limit),
    rotateKey: (rotation, record) => rotateKey(db, rotation, record),
    limitKey: (keyId, limits, nowMs, record) => limitKey(db, keyId, limits, nowMs, record),
    revokeKey: (keyId, nowMs, record) => revokeKey(db, keyId, nowMs, record),
    addUpstream: (upstream, maxUpstreams, record) => addUpstream(db, upstream, maxUpstreams, record),
    listUpstreams: (accountId) => listUpstreams(db, accountId),
    addAccountWithEmail: (account, address, record) => addAccountWithEmail(db, account, address, record),
    addEmail: (email, maxEmails, record) => addEmail(db, email, maxEmails, record),
    findEmail: (address) => findEmail(db, address),
    listEmails: (accountId) => listEmails(db, accountId),
    removeEmail: (accountId, address, record) => removeEmail(db, accountId, address, record),
    addProof: (proof, digests, forgetBeforeMs) => addProof(db, proof, digests, forgetBeforeMs),
    findProof: (proofId) => findProof(db, proofId),
    findProofByLink: (linkDigest) => findProofByLink(db, linkDigest),
    countProofs: (of, sinceMs, upTo) => countProofs(db, of, sinceMs, upTo),
    tryCode: (proofId, codeDigest, maxTries, nowMs) => tryCode(db, proofId, codeDigest, maxTries, nowMs),
    useLink: (linkDigest, nowMs) => useLink(db, linkDigest, nowMs),
    addPasskey: (passkey, maxPasskeys, record) => addPasskey(db, passkey, maxPasskeys, record),
    findPasskey: (passkeyId) => findPasskey(db, passkeyId),
    listPasskeys: (accountId) => listPasskeys(db, accountId),
    usePasskey: (passkeyId, counter, nowMs) => usePasskey(db, passkeyId, counter, nowMs),
    removePasskey: (accountId, passkeyId, record) => removePasskey(db, accountId, passkeyId, record),
    useChallenge: (digest, expiresAtMs, nowMs) => useChallenge(db, digest, expiresAtMs, nowMs),
    addSession: (session, digest, maxSessions) => addSession(db, session, digest, maxSessions),
    findSession: (digest) => findSession(db, digest),
    touchSession: (digest, nowMs) => touchSession(db, digest, nowMs),
    listSessions: (accountId) => listSessions(db, accountId),
    removeSession: (accountId, sessionId) => removeSession(db, accountId, sessionId),
    removeSessions: (accountId) => removeSessions(db, accountId),
    removeUpstream: (accountId, upstreamId, record) => removeUpstream(db, accountId, upstreamId, record),
    appendAudit: (record) => append(db, record),
    listAudit: (selection) => listEntries(db, selection),
    auditHead: () => readHead(db),
    readAudit: (afterSequence, limit) => readLinks(db, afterSequence, limit),
    addCheckpoint: (checkpoint) => addCheckpoint(db, checkpoint),
    listCheckpoints: (limit) => listCheckpoints(db, limit),
    proveAudit: (record) => proveAppend(db, record),
    managedAccess: () => readManagedAccess(db),
    switchManagedAccess: (on, record) => switchManagedAccess(db, on, record),
    recordResale: (control, record) => recordResale(db, control, record),
    revokeResale: (provider, atMs, record) => revokeResale(db, provider, atMs, record),
    addManagedRequest: (request, maxRequests, record) => addRequest(db, request, maxRequests, record),
    findManagedRequest: (id) => findManagedRequest(db, id),
    listManagedRequests: (selection) => listManagedRequests(db, selection),
    stepManagedRequest: (id, step, atMs, record) => stepRequest(db, id, step, atMs, record),
    hasManagedAccess: (accountId) => hasApproved(db, accountId),
    find: (digest) => findByDigest(db, digest),
    revision: () => readRevision(db),
    findRequest: (id) => findRequest(db, id),
    listRequests: (selection) => listRequests(db, selection),
    usedUnits: (accountId, periodId) => usedUnits(db, accountId, periodId),
    lastKeyUses: (accountId, among) => lastKeyUses(db, accountId, among),
    deleteRequestsBefore: (timeMs, limit) => deleteRequestsBefore(db, timeMs, limit),
    addProviderErrors: (errors) => addProviderErrors(db, errors),
    listProviderErrors: (requestId, accountId) => listProviderErrors(db, requestId, accountId),
    deleteProviderErrorsBefore: (timeMs, limit) => deleteProviderErrorsBefore(db, timeMs, limit),
    addRefused: (hours) => addRefused(db, hours),
    sumRefused: (selection) => sumRefused(db, selection),
    listRefusedHours: (accountId, before, limit) => listRefusedHours(db, accountId, before, limit),
    deleteRefusedBefore: (timeMs, limit) => deleteRefusedBefore(db, timeMs, limit),
    addUpUsage: (accountId, fromMs, untilMs, maxPerDay) => addUpUsage(db, accountId, fromMs, untilMs, maxPerDay),
    listActivity: (accountId, selection, among) => listActivity(db, accountId, selection, among),
    findActivity: (accountId, requestId) => findActivity(db, accountId, requestId),
    listUsedUnits: (accountId, limit) => listUsedUnits(db, accountId, limit),
    listProofs: (accountId, limit) => listProofs(db, accountId, limit),
    listOwnTickets: (accountId, limit) => listOwnTickets(db, accountId, limit),
    deleteAccount: (accountId, nowMs, record) => deleteAccount(db, accountId, nowMs, record),
    billing: createBillingStore(db),
    operators: createOperatorStore(db),
    addTicket: (ticket, forgetBeforeMs, maxKept) => addTicket(db, ticket, forgetBeforeMs, maxKept),
    listTickets: (limit, among) => listTickets(db, limit, among),
    countTickets: () => countTickets(db),
    findTicket: (id) => findTicket(db, id),
    closeTicket: (id, closedAtMs, record) => closeTicket(db, id, closedAtMs, record),
    listBackendControls: () => listBackendControls(db),
    holdBackend: (control, record) => holdBackend(db, control, record),
    undrainBackend: (backendId, record) => undrainBackend(db, backendId, record),
    releaseBackend: (backendId, by, record) => releaseBackend(db, backendId, by, record),
    addUptime: (counts, forgetBefore) => addUptime(db, counts, forgetBefore),
    listUptime: (fromDay) => listUptime(db, fromDay),
    addIncident: (incident, record) => addIncident(db, incident, record),
    addIncidentUpdate: (incidentId, update, record) => addIncidentUpdate(db, incidentId, update, record),
    listIncidents: (sinceMs, limit) => listIncidents(db, sinceMs, limit),
    close: () => db.destroy(),
  }
}
