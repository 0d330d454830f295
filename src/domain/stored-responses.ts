import { createHash } from 'node:crypto'

/** One answer that is kept, with what was asked for it (contract 12.1). Its texts are sealed; times are epoch milliseconds. */
export interface StoredResponse extends StoredTurn {
  readonly accountId: string
  /** The response object as the caller saw it, without its output. */
  readonly sealedResponse: string
}

/** What of a stored answer a later request goes on from. */
export interface StoredTurn {
  /** `resp_…` */
  readonly id: string
  /** The answer that it went on from. */
  readonly previousId: string | undefined
  readonly createdAtMs: number
  /** How many stored answers a request that goes on from this one has behind it, this one included. */
  readonly links: number
  /** JSON text of input and output, this one's and those of all links behind it. */
  readonly chainBytes: number
  /** The items of this request alone, as JSON. */
  readonly sealedInput: string
  /** The items of the answer, as JSON. */
  readonly sealedOutput: string
}

/** Where an item stands. */
export interface ItemLocation {
  readonly digest: string
  readonly responseId: string
  readonly createdAtMs: number
}

/** How an item's id is kept, for finding it: callers may write anything into an id, so its text is not. */
export function itemDigest(accountId: string, itemId: string): string {
  return createHash('sha256')
    .update(JSON.stringify([accountId, itemId]))
    .digest('base64url')
}
