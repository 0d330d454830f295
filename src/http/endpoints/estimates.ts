import { errorMessage } from '../../domain/error-message.ts'
import { ServiceError } from '../../domain/errors.ts'
import type { ClientFormatId } from '../../domain/format-id.ts'
import type { JsonObject } from '../../domain/json.ts'
import type { Links } from '../../domain/links.ts'
import type { RoutingPlan } from '../../domain/routing-plan.ts'
import type { TokenCount } from '../../formats/client-conventions.ts'
import { formatById } from '../../formats/formats.ts'
import type { Gateway } from '../../gateway/gateway.ts'
import type { ModelRequest, Principal } from '../../gateway/ports.ts'
import type { AttemptLimiter, LimiterState } from '../attempt-limiter.ts'
import { sendJson } from '../respond.ts'
import type { Exchange } from '../route.ts'
import type { HeaderList } from '../usage-headers.ts'

export interface EstimatesDeps {
  readonly gateway: Gateway
  readonly links: Links
  readonly uncounted: AttemptLimiter
  readonly readRequest: (exchange: Exchange, format: ClientFormatId) => Promise<ModelRequest>
  /** The request as it runs. @throws ServiceError */
  readonly asRun: (request: ModelRequest) => Promise<ModelRequest>
  /** Headers of a response that takes nothing from the quota. */
  readonly headersFor: (principal: Principal, limiter: LimiterState) => Promise<HeaderList>
}

/**
 * What can be said of a request without sending it: its size, and where it would go. Neither counted nor admitted, and
 * no backend is called (contract 2.11, 2.44, 5.15, 6.10, 7.28).
 */
export class Estimates {
  readonly #deps: EstimatesDeps

  constructor(deps: EstimatesDeps) {
    this.#deps = deps
  }

  /** The estimated number of input tokens; the response says that it is an estimate. */
  async countTokens(exchange: Exchange, format: ClientFormatId, count: TokenCount): Promise<void> {
    const { response, requestId } = exchange
    const { principal, limiter } = this.#take(exchange)
    const { body } = await this.#deps.readRequest(exchange, format)
    const inputTokens = this.#deps.gateway.countTokens(principal, format, body)
    const idHeader = formatById(format).conventions.requestIdHeader
    sendJson(response, requestId, 200, count.write(inputTokens), [
      'X-Svc-Router-Estimated',
      'true',
      ...(idHeader === undefined ? [] : [idHeader, requestId]),
      ...(await this.#deps.headersFor(principal, limiter)),
    ])
  }

  /** Which backends the request would get, and why. */
  async explain(exchange: Exchange): Promise<void> {
    const { request, response, requestId } = exchange
    const { principal, limiter } = this.#take(exchange)
    const read = await this.#deps.readRequest(exchange, 'openai-chat')
    const format = formatOf(request.headers, read.body)
    const { gateway, asRun } = this.#deps
    const plan = await gateway.explain(principal, await asRun({ ...read, format }))
    sendJson(response, requestId, 200, writePlan(plan, { format, links: this.#deps.links }), [
      ...(await this.#deps.headersFor(principal, limiter)),
    ])
  }

  #take({ principal }: Exchange): { readonly principal: Principal; readonly limiter: LimiterState } {
    if (principal === undefined) throw new Error('a model route without a principal')
    return { principal, limiter: this.#deps.uncounted.take(principal.accountId) }
  }
}

/** The format of a body that any of the three model endpoints would take. */
function formatOf(headers: Exchange['request']['headers'], body: JsonObject): ClientFormatId {
  if (headers['anthropic-version'] !== undefined) return 'anthropic-messages'
  return Object.hasOwn(body, 'messages') ? 'openai-chat' : 'openai-responses'
}

function writePlan(
  { profile, refusal, sort, panel, asked, leftOut }: RoutingPlan,
  { format, links }: { readonly format: ClientFormatId; readonly links: Links },
): JsonObject {
  const filters: Record<string, number> = {}
  for (const { reason } of leftOut) filters[reason] = (filters[reason] ?? 0) + 1
  return {
    object: 'route',
    profile,
    format,
    sort: sort ?? null,
    // Which models a fusion asks is not shown unless its settings say so, and then with the answer.
    fusion: panel !== undefined,
    refusal: refusal === undefined ? null : writeRefusal(refusal, links),
    backends: asked.map(({ backend, model, format: spoken, lane, simulated, doubts, score, share }) => ({
      backend,
      model,
      format: spoken,
      lane,
      simulated,
      doubts,
      ...(score === undefined ? {} : { score: Math.round(score) }),
      ...(share === undefined ? {} : { share: Math.round(share * 1000) / 1000 }),
    })),
    left_out: leftOut.map(({ backend, reason, untilMs }) => ({
      backend,
      reason,
      until: untilMs === undefined ? null : Math.ceil(untilMs / 1000),
    })),
    filters,
  }
}

function writeRefusal({ code, param, words, action }: NonNullable<RoutingPlan['refusal']>, links: Links): JsonObject {
  const error = new ServiceError(code, { ...(words && { words }), ...(action && { action }) })
  return { code, param: param ?? null, message: errorMessage(error, links) }
}
