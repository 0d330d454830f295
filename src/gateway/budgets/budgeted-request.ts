import type { UsageSignals } from '../../domain/account-meter.ts'
import { type Amounts, amountsOf, type Budget, type BudgetClaim, noAmounts } from '../../domain/budgets.ts'
import type { Conversation } from '../../domain/conversation.ts'
import { ServiceError } from '../../domain/errors.ts'
import { playgroundKeyId } from '../../domain/keys.ts'
import type { RequestOutcome } from '../../domain/requests.ts'
import type { Formats } from '../../formats/format.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { Admission, AllowedRequest, Backend, DeliveryState, HeldBudgets, Principal } from '../ports.ts'
import type { BackendRequestBody } from '../request/backend-request.ts'
import type { DurabilityWait } from '../request/durability-wait.ts'
import { withOutputLimit } from './cap-output.ts'
import { pricedRequest } from './highest-cost.ts'
import type { InputBound } from './input-bound.ts'
import { type ReadSpending, refusedCallError } from './refused-call.ts'
import { answersOf, applicableBudgets, claimFor, type ClaimingRequest } from './request-claim.ts'
import { RequestSpending } from './request-spending.ts'

/** An admitted request, before or after it got the form in which its budgets can pay for it. */
interface AdmittedRequest<Request> {
  readonly request: Request
  readonly conversation: Conversation
  readonly admission: Admission
  /** The body that was already written for the first backend, if any. */
  readonly written: BackendRequestBody | undefined
}

interface PrepareDeps {
  readonly readSpending?: ReadSpending | undefined
  readonly formats: Formats
  readonly commits: DurabilityWait
  readonly clock: Clock
}

/** A request that budgets count, from its claim to its admission (contract 46.3). */
export class BudgetedRequest {
  readonly claim: BudgetClaim
  /** Those of its backends whose costs are known, if a budget is in US dollars. */
  readonly backends: readonly Backend[]
  readonly #asking: ClaimingRequest
  readonly #input: InputBound

  private constructor(budgets: readonly Budget[], asking: ClaimingRequest) {
    const { claim, backends, input } = claimFor(budgets, asking)
    this.claim = claim
    this.backends = backends
    this.#asking = asking
    this.#input = input
  }

  /** Undefined if none of the account's budgets counts the request. @throws ServiceError `budget_price_unknown` */
  static of(all: readonly Budget[], keyId: string, asking: ClaimingRequest): BudgetedRequest | undefined {
    const budgets = applicableBudgets(all, keyId, asking.profile)
    return budgets.length === 0 ? undefined : new BudgetedRequest(budgets, asking)
  }

  /**
   * Prepares the admitted request: it has the output limit that its budgets can pay for, and what it holds is on disk before
   * any backend is asked. @throws ServiceError `record_unavailable`
   */
  async prepare<Request extends AllowedRequest>(
    { request: allowed, admission, written: body }: AdmittedRequest<Request>,
    { formats, commits, clock, readSpending }: PrepareDeps,
  ): Promise<AdmittedRequest<Request>> {
    const { held } = admission
    if (held === undefined) throw new Error('the ledger holds nothing for a request with budgets')
    try {
      const opened = admission.durable()
      if (opened !== undefined) await commits.of(opened)
      const { request, conversation } = await this.#limited(held, formats)
      const spending = this.#spendingOf(held, conversation, { clock, readSpending })
      const { bytes, members } = request
      return {
        request: {
          ...allowed,
          bytes,
          members,
          body: request.body,
          grant: spending.grant(allowed.grant),
          spending,
        },
        conversation,
        admission: new BudgetedAdmission(admission, spending),
        written: bytes === allowed.bytes ? body : undefined,
      }
    } catch (error) {
      const outcome = { charged: 0, attempts: [], totalMs: 0, errorCode: 'record_unavailable' } as const
      admission.settle(outcome, 'none', noAmounts)
      throw error
    }
  }

  /** A fusion limits each of its calls instead. */
  async #limited({ outputTokens }: HeldBudgets, formats: Formats) {
    const { request, conversation, calls } = this.#asking
    if (calls > 1 || !this.#setsLimit(outputTokens)) return { request, conversation }
    return await withOutputLimit(request, outputTokens, formats)
  }

  /** Whether an output limit is not the request's own, or lower than what its calls would have without budgets. */
  #setsLimit(outputTokens: number): boolean {
    const { mostOutput } = this.claim
    const { maxOutputTokens } = this.#asking.conversation.sampling
    return mostOutput > 0 && (maxOutputTokens === undefined || outputTokens < mostOutput)
  }

  #spendingOf(
    held: HeldBudgets,
    conversation: Conversation,
    { clock, readSpending }: Pick<PrepareDeps, 'clock' | 'readSpending'>,
  ): RequestSpending {
    const { outputTokens } = held
    return new RequestSpending(held, {
      amounts: amountsOf(this.claim, outputTokens),
      inUsd: this.claim.budgets.some(({ unit }) => unit === 'usd'),
      input: this.#input,
      outputTokens,
      limitOfBudgets: this.#setsLimit(outputTokens) ? outputTokens : undefined,
      answers: answersOf(conversation.sampling),
      ...pricedRequest(this.#asking.request.body, conversation),
      nowMs: () => clock.nowMs(),
      monotonicMs: () => clock.monotonicMs(),
      refusalOf: readSpending && ((call) => refusedCallError(this.claim.budgets, call, readSpending, clock)),
    })
  }
}

/** Whether budgets may count the caller's requests. Requests of the app itself use no key, whose budgets would be known. */
export function mayHaveBudgets({ budgets, keyId }: Principal): boolean {
  return budgets !== undefined || keyId === playgroundKeyId
}

/**
 * The request with its claim, if a budget counts it; synchronous for requests with a key. `readBudgets` reads those of an
 * account for the requests of the app itself, which use no key.
 * @throws ServiceError `budget_price_unknown`, `store_unavailable`
 */
export function budgetedFor(
  readBudgets: ((accountId: string) => Promise<readonly Budget[]>) | undefined,
  { accountId, keyId, budgets }: Principal,
  asking: ClaimingRequest,
): BudgetedRequest | undefined | Promise<BudgetedRequest | undefined> {
  const of = (all: readonly Budget[]): BudgetedRequest | undefined => BudgetedRequest.of(all, keyId, asking)
  if (budgets !== undefined) return of(budgets)
  if (keyId !== playgroundKeyId || readBudgets === undefined) return undefined
  return readBudgets(accountId).then(of, (cause: unknown) => {
    throw new ServiceError('store_unavailable', { retryAfterSeconds: 1, cause })
  })
}

/** Tells the ledger what a request spent when it ends. */
class BudgetedAdmission implements Admission {
  readonly #admission: Admission
  readonly #spending: RequestSpending

  constructor(admission: Admission, spending: RequestSpending) {
    this.#admission = admission
    this.#spending = spending
  }

  signals(): UsageSignals {
    return this.#admission.signals()
  }

  durable(): Promise<void> | undefined {
    return this.#admission.durable()
  }

  deliver(): void {
    this.#admission.deliver()
  }

  settle(outcome: RequestOutcome, delivery: DeliveryState, spent: Amounts = this.#spending.spent()): void {
    this.#admission.settle(outcome, delivery, spent)
  }
}
