import { ServiceError } from '../../domain/errors.ts'
import type { JsonObject } from '../../domain/json.ts'
import type { RequestRecord } from '../../domain/requests.ts'
import type { SessionCost } from '../../domain/session-costs.ts'
import type { Principal } from '../../gateway/ports.ts'
import { lookupRoute, type LookupDeps } from '../lookup-route.ts'
import { pathOf } from '../paths.ts'
import type { ApiRoute } from '../route.ts'
import { plainRequest } from './request-json.ts'

const keyPath = '/v1/key'
const requestsPath = '/v1/requests/'
const idShape = /^req_[A-Za-z0-9]{1,64}$/

/** What keys can read about themselves and the requests of their account. */
export interface OwnRecords {
  /** Undefined if the account has no such request. Throws if the store is unavailable. */
  findRequest(accountId: string, id: string): Promise<RequestRecord | undefined>
  /** What a session of the account cost; undefined if it has no request. */
  findSessionCost(accountId: string, session: string): Promise<SessionCost | undefined>
  /** The models of backends, as they are configured now. */
  modelsFor(accountId: string): Promise<(backendId: string) => string | undefined>
  /** The key's name, limits, and end, and the budgets that count its requests. */
  describeKey(accountId: string, keyId: string): Promise<JsonObject | undefined>
}

/** `GET /v1/key` and `GET /v1/requests/{id}`. They take nothing from the plan (contract 43.4). */
export class SelfService {
  readonly #records: OwnRecords
  readonly #deps: LookupDeps
  readonly #key: ApiRoute
  readonly #request: ApiRoute

  constructor(deps: LookupDeps, records: OwnRecords) {
    this.#records = records
    this.#deps = deps
    this.#key = lookupRoute(deps, 'GET', (_, principal) => this.#describe(principal))
    this.#request = lookupRoute(deps, 'GET', ({ request }, { accountId }) => this.#find(accountId, pathOf(request)))
  }

  /** The route of a path; undefined if it is none of these. */
  routeOf(path: string): ApiRoute | undefined {
    if (path === keyPath) return this.#key
    return path.startsWith(requestsPath) && !path.slice(requestsPath.length).includes('/') ? this.#request : undefined
  }

  /** The plan, its limits and what is left of them, and what is known of the key (contract 43.1). */
  async #describe(principal: Principal): Promise<JsonObject> {
    const { accountId, keyId, plan } = principal
    const [signals, key] = await Promise.all([
      this.#deps.signalsOf(principal),
      orUnavailable(this.#records.describeKey(accountId, keyId)),
    ])
    if (signals === undefined || key === undefined)
      throw new ServiceError('store_unavailable', { retryAfterSeconds: 1 })
    return {
      object: 'key',
      ...key,
      plan: { id: plan.id, name: plan.name, premium: plan.premium },
      requests_per_minute: {
        limit: signals.rateLimit,
        remaining: signals.rateRemaining,
        resets_at: timeOf(signals.rateReset * 1000),
      },
      quota: {
        period: 'month',
        limit: signals.quotaLimit,
        used: signals.quotaUsed,
        remaining: signals.quotaRemaining,
        resets_at: timeOf(signals.quotaReset * 1000),
      },
    }
  }

  /** A request of another account does not exist (contract 43.3). */
  async #find(accountId: string, path: string): Promise<JsonObject> {
    const id = path.slice(requestsPath.length)
    const record = idShape.test(id) ? await orUnavailable(this.#records.findRequest(accountId, id)) : undefined
    if (record === undefined) throw new ServiceError('request_not_found')
    const { session } = record
    const [modelOf, cost] = await Promise.all([
      orUnavailable(this.#records.modelsFor(accountId)),
      session === undefined ? undefined : orUnavailable(this.#records.findSessionCost(accountId, session)),
    ])
    return plainRequest(record, modelOf, cost)
  }
}

function timeOf(ms: number): string {
  return new Date(ms).toISOString()
}

/** @throws ServiceError `store_unavailable` */
function orUnavailable<Value>(value: Promise<Value>): Promise<Value> {
  return value.catch((cause: unknown) => {
    throw new ServiceError('store_unavailable', { retryAfterSeconds: 1, cause })
  })
}
