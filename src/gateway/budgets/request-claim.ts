import { ownBudgetName } from '../../domain/budget-text.ts'
import { appliesTo, type Budget, type BudgetClaim, leastOutputTokens } from '../../domain/budgets.ts'
import type { Conversation, Sampling } from '../../domain/conversation.ts'
import { ServiceError } from '../../domain/errors.ts'
import { estimateTokens } from '../../domain/estimate-tokens.ts'
import { type JsonObject, objectOf } from '../../domain/json.ts'
import { otherModelsIn } from '../../domain/other-models.ts'
import { unsupported } from '../../formats/assert-translatable.ts'
import type { OutputLimit } from '../../formats/format.ts'
import type { Backend, ModelRequest } from '../ports.ts'
import { highestCost, pricedRequest } from './highest-cost.ts'
import { inputAt, inputBound, type InputBound } from './input-bound.ts'

/** The output limit for a model whose own is unknown, in tokens. Models that reason count that, too. */
const assumedOutputTokens = 8_192
const assumedReasoningTokens = 32_768
/** Safety factor for filling a window, because the count is an estimate. */
const windowFactor = 1.1

/** What a request asks of budgets, and the backends whose costs they can bound. */
export interface RequestClaim {
  readonly claim: BudgetClaim
  readonly backends: readonly Backend[]
  /** The most input of one call. */
  readonly input: InputBound
}

/** The request, and who sends it. */
export interface ClaimingRequest {
  readonly request: ModelRequest
  readonly conversation: Conversation
  readonly backends: readonly Backend[]
  readonly profile: string
  /** That of the request's format. */
  readonly outputLimit: OutputLimit | undefined
  readonly nowMs: number
  /** Upstream calls that are planned: one, or those of a fusion. */
  readonly calls: number
  /** Of a fusion: the highest output limit that it gives one of its calls, such as that of the judge. */
  readonly fusionOutput?: number | undefined
}

/** Budgets by key and profile, for each list of budgets: the ledger recognizes equal lists by identity. */
const applicable = new WeakMap<readonly Budget[], Map<string, readonly Budget[]>>()

/** Those of an account's budgets that count requests with a key to a profile; the same list for the same arguments. */
export function applicableBudgets(all: readonly Budget[], keyId: string, profile: string): readonly Budget[] {
  let lists = applicable.get(all)
  if (lists === undefined) applicable.set(all, (lists = new Map()))
  const name = `${keyId} ${profile}`
  let list = lists.get(name)
  if (list === undefined) {
    list = all.filter((budget) => appliesTo(budget, keyId, profile))
    lists.set(name, list)
  }
  return list
}

/**
 * The worst case of a request (contract 46.3): the most expensive of its backends for all of its input, and for each token of its
 * output. Backends without a known price are left out if a budget is in US dollars (contract 46.9).
 * @throws ServiceError `budget_price_unknown` if none is left
 */
export function claimFor(budgets: readonly Budget[], asking: ClaimingRequest): RequestClaim {
  const { request, conversation, profile, calls } = asking
  assertBounded(request.body)
  const input = inputBound(request.bytes.length, conversation, request.body)
  const inUsd = budgets.find(({ unit }) => unit === 'usd')
  const priced = { ...pricedRequest(request.body, conversation), atMs: asking.nowMs }
  const costs = asking.backends.map((backend) =>
    highestCost(backend, { ...priced, inputTokens: inputAt(input, backend) }),
  )
  const backends = inUsd === undefined ? asking.backends : asking.backends.filter((_, at) => costs[at] !== undefined)
  if (backends.length === 0)
    throw new ServiceError('budget_price_unknown', { words: { budget: ownBudgetName(inUsd!), profile } })
  const known = costs.filter((cost) => cost !== undefined)
  const answers = answersOf(conversation.sampling)
  const most = (values: readonly number[]): number => values.reduce((a, b) => Math.max(a, b), 0)
  const largest = most(backends.map((backend) => inputAt(input, backend)))
  const output = outputLimits(asking, backends)
  const claim: BudgetClaim = {
    budgets,
    base: { nanoUsd: calls * most(known.map((cost) => cost.input)), tokens: calls * largest },
    // More than any budget has, however many answers were asked for: exact.
    perOutputToken: {
      nanoUsd: exact(calls * answers * most(known.map(({ perOutputToken }) => perOutputToken))),
      tokens: exact(calls * answers),
    },
    leastOutput: output.least,
    mostOutput: output.most,
  }
  return { claim, backends, input }
}

function exact(amount: number): number {
  return Math.min(amount, Number.MAX_SAFE_INTEGER)
}

/** How many answers a provider writes in one call. */
export function answersOf({ candidates, choices = 1 }: Sampling): number {
  return candidates ?? choices
}

/**
 * With these members, the provider uses other models, or runs other paid services. Nobody can tell what they cost, so a
 * request with budgets must not have them (contract 46.20). @throws ServiceError `unsupported_parameter`
 */
function assertBounded(body: JsonObject): void {
  const other = otherModelsIn(body)
  if (other === undefined) return
  const { name, what } = other
  throw unsupported(
    name,
    `A budget applies to this request, and the cost of ${what} cannot be known in advance. Send the request without ${what}.`,
  )
}

/**
 * The output limits that the request allows: its own, if it is a wish of the caller (contract 46.4). Calls of a fusion can need
 * more than the answer.
 */
function outputLimits(
  { request, conversation, outputLimit, fusionOutput = 0 }: ClaimingRequest,
  backends: readonly Backend[],
) {
  if (outputLimit === undefined) return { least: 0, most: 0 }
  const { maxOutputTokens } = conversation.sampling
  const usual = usualOutput(conversation, backends)
  const most = maxOutputTokens === undefined ? usual : Math.max(maxOutputTokens, Math.min(usual, fusionOutput))
  if (maxOutputTokens !== undefined && outputLimit.isRequired !== true) return { least: maxOutputTokens, most }
  const { budget_tokens: thinking = 0 } = objectOf(request.body['thinking'])
  // The limit includes thinking, and must be larger.
  const least = leastOutputTokens + (typeof thinking === 'number' ? Math.max(0, thinking) : 0)
  return { least: Math.min(least, maxOutputTokens ?? most), most }
}

/** The longest answer that every backend accepts as a limit. */
function usualOutput(conversation: Conversation, backends: readonly Backend[]): number {
  const input = Math.ceil(estimateTokens(conversation) * windowFactor)
  let most = Number.POSITIVE_INFINITY
  for (const { maxOutputTokens, contextWindow, capabilities } of backends) {
    const assumed = capabilities?.reasoning === true ? assumedReasoningTokens : assumedOutputTokens
    most = Math.min(most, maxOutputTokens ?? assumed)
    if (contextWindow !== undefined) most = Math.min(most, Math.max(leastOutputTokens, contextWindow - input))
  }
  return most
}
