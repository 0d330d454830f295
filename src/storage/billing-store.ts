import type { Kysely } from 'kysely'
import type { BillingStore } from '../accounts/billing/ports.ts'
import {
  applyRead,
  beginClosing,
  claimChecks,
  deleteEventsBefore,
  findBilling,
  findBillingOf,
  hasHandled,
  hastenCheck,
  linkCustomer,
  noteHandled,
  postponeCheck,
  removeBilling,
  takeRead,
} from './billing.ts'
import type { Tables } from './schema/schema.ts'
import { addUpgradeRequest, decideUpgradeRequest, findUpgradeRequest, listUpgradeRequests } from './upgrade-requests.ts'

/** Implements the billing port with the billing queries, on either engine. */
export function createBillingStore(db: Kysely<Tables>): BillingStore {
  return {
    findBilling: (accountId) => findBilling(db, accountId),
    findBillingOf: (customerId) => findBillingOf(db, customerId),
    linkCustomer: (accountId, customerId, checkAtMs) => linkCustomer(db, accountId, customerId, checkAtMs),
    takeRead: (accountId) => takeRead(db, accountId),
    applyRead: (read) => applyRead(db, read),
    scheduleCheckNow: (accountId, atMs) => hastenCheck(db, accountId, atMs),
    postponeCheck: (accountId, atMs) => postponeCheck(db, accountId, atMs),
    claimChecks: (nowMs, againAtMs, limit) => claimChecks(db, nowMs, againAtMs, limit),
    beginClosing: (accountId, nowMs) => beginClosing(db, accountId, nowMs),
    removeBilling: (accountId) => removeBilling(db, accountId),
    hasHandled: (eventId) => hasHandled(db, eventId),
    noteHandled: (eventId, nowMs) => noteHandled(db, eventId, nowMs),
    deleteEventsBefore: (timeMs, limit) => deleteEventsBefore(db, timeMs, limit),
    addUpgradeRequest: (request, maxKept, record) => addUpgradeRequest(db, request, maxKept, record),
    findUpgradeRequest: (id) => findUpgradeRequest(db, id),
    listUpgradeRequests: (selection) => listUpgradeRequests(db, selection),
    decideUpgradeRequest: (id, state, record) => decideUpgradeRequest(db, id, state, record),
  }
}
