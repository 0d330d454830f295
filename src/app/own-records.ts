import { budgetStates, plainBudget } from '../accounts/budgets.ts'
import { mayCount } from '../domain/budgets.ts'
import type { OwnRecords } from '../http/endpoints/self-service.ts'
import type { Runtime } from './runtime.ts'
import type { Storage } from './storage.ts'

/** What keys can read about themselves and their account's requests (contract 43). */
export function ownRecords(
  { served }: Runtime,
  { store, quotaNowMs }: Pick<Storage, 'store' | 'quotaNowMs'>,
): OwnRecords {
  return {
    findRequest: (accountId, id) => store.findActivity(accountId, id),
    findSessionCost: (accountId, session) => store.findSessionCost(accountId, session),
    async modelsFor(accountId) {
      const models = new Map(
        [...served.backends, ...(await store.listUpstreams(accountId))].map(({ id, model }) => [id, model]),
      )
      return (backendId) => models.get(backendId)
    },
    async describeKey(accountId, keyId) {
      const [key, budgets] = await Promise.all([store.findKey(keyId), budgetStates(store, accountId, quotaNowMs())])
      if (key === undefined) return undefined
      const { profiles, perMinute, addresses } = key.limits
      return {
        id: key.id,
        name: key.name,
        account: accountId,
        expires_at: key.endsAtMs === null ? null : new Date(key.endsAtMs).toISOString(),
        limits: { profiles, requests_per_minute: perMinute, addresses },
        budgets: budgets.filter(({ budget }) => mayCount(budget, keyId)).map(plainBudget),
      }
    },
  }
}
