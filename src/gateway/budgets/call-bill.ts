import type { Usage } from '../../domain/conversation.ts'
import type { TokenPrice } from '../../domain/token-price.ts'

/** What is known of a call whose answer broke off before its provider had counted it. */
export interface CutAnswer {
  /** Whether the provider counted the input. */
  readonly hasInput: boolean
  /** How much the request asks the model to reason. */
  readonly effort: string | undefined
  /** Whether the provider counted reasoning so far: then it hides none. */
  readonly countsReasoning: boolean
}

/** What is known about the cost of one upstream call: the same object from its beginning to its end (contract 42.8). */
export interface CallBill {
  /** Whether a provider that no longer delivers stops writing. */
  readonly isStream: boolean
  /** Whether the provider got nothing of the call, or rejected it with a status. */
  readonly isFree: boolean
  /** Whether the provider accepted the call with a successful status. */
  readonly isAccepted: boolean
  /** Whether content of its answer arrived. */
  readonly hasContent: boolean
  /** Whether the service tier of its usage is known; if not, it was estimated for the usual one. */
  readonly hasTier: boolean
  /** Undefined if nothing is due as far as is known. */
  readonly usage: Usage | undefined
  /** Present if that is an estimate of an answer that broke off. */
  readonly cut: CutAnswer | undefined
  /** The price of its tokens; undefined if it is unknown. */
  readonly price: TokenPrice | undefined
}
