import type { UsageSignals } from '../domain/account-meter.ts'
import { invalidRequest, ServiceError } from '../domain/errors.ts'
import type { JsonObject } from '../domain/json.ts'
import type { Principal } from '../gateway/ports.ts'
import type { AttemptLimiter } from './attempt-limiter.ts'
import { sendJson } from './respond.ts'
import type { Exchange, ApiRoute } from './route.ts'
import { usageHeaders } from './usage-headers.ts'

const defaultPageSize = 20
const largestPageSize = 100

/** Dependencies of endpoints that take nothing from the plan. */
export interface LookupDeps {
  readonly nowMs: () => number
  /** Rate limit for requests that the plan does not count (contract 5.15, 6.10). */
  readonly uncounted: AttemptLimiter
  readonly signalsOf: (principal: Principal) => Promise<UsageSignals | undefined>
}

/** A route that takes nothing from the plan and answers with JSON. */
export function lookupRoute(
  { uncounted, signalsOf, nowMs }: LookupDeps,
  method: ApiRoute['method'],
  answer: (exchange: Exchange, principal: Principal) => Promise<JsonObject>,
  allowed: string = method,
): ApiRoute {
  const handle = async (exchange: Exchange): Promise<void> => {
    const principal = principalOf(exchange)
    const limiter = uncounted.take(principal.accountId)
    const body = await answer(exchange, principal)
    const signals = await signalsOf(principal)
    if (signals === undefined) throw new ServiceError('store_unavailable', { retryAfterSeconds: 1 })
    const headers = ['Cache-Control', 'no-store', ...usageHeaders(signals, nowMs(), limiter)]
    sendJson(exchange.response, exchange.requestId, 200, body, headers)
  }
  return { method, allowed, access: 'key', gated: true, handle }
}

export function principalOf({ principal }: Exchange): Principal {
  if (principal === undefined) throw new Error('a key route without a principal')
  return principal
}

export function queryOf(url = ''): URLSearchParams {
  const at = url.indexOf('?')
  return new URLSearchParams(at < 0 ? '' : url.slice(at + 1))
}

/** The requested page of a list. */
export interface Page {
  readonly limit: number
  readonly order: 'asc' | 'desc'
  /** The id of the item before the page. */
  readonly after: string | undefined
}

/** The page that the query of a list names (contract 2.45). @throws ServiceError `invalid_request` */
export function readPage(url: string | undefined): Page {
  const query = queryOf(url)
  const limit = Number(query.get('limit') ?? defaultPageSize)
  if (!Number.isInteger(limit) || limit < 1 || limit > largestPageSize) {
    throw invalidRequest('limit', `limit must be a whole number from 1 to ${largestPageSize}.`)
  }
  const order = query.get('order') ?? 'desc'
  if (order !== 'asc' && order !== 'desc') throw invalidRequest('order', 'order must be asc or desc.')
  return { limit, order, after: query.get('after') ?? undefined }
}

/** A list in OpenAI's format. */
export function listOf(data: readonly JsonObject[], hasMore: boolean): JsonObject {
  return {
    object: 'list',
    data,
    first_id: data[0]?.['id'] ?? null,
    last_id: data.at(-1)?.['id'] ?? null,
    has_more: hasMore,
  }
}
