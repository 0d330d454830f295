import { createHash } from 'node:crypto'

/** A stored answer and its input (contract 12.1). Texts are encrypted; times are epoch milliseconds. */
export interface StoredResponse extends StoredTurn {
  readonly accountId: string
  /** The response object as the client received it, without its output. */
  readonly sealedResponse: string
}

/** The part of a stored answer that later requests continue from. */
export interface StoredTurn {
  /** `resp_…` */
  readonly id: string
  /** The answer that this one continues. */
  readonly previousId: string | undefined
  readonly createdAtMs: number
  /** The length of the chain of stored answers that ends with this one. */
  readonly links: number
  /** The length of the JSON text of input and output, of the whole chain. */
  readonly chainBytes: number
  /** The input items of this request alone, as JSON. */
  readonly sealedInput: string
  /** The output items, as JSON. */
  readonly sealedOutput: string
}

/** The position of an item. */
export interface ItemLocation {
  readonly digest: string
  readonly responseId: string
  readonly createdAtMs: number
}

/**
 * The answer's id, derived from the request id: the same in every event, and the id it is stored under (contract 12.5).
 */
export function responseIdFor(requestId: string): string {
  return `resp_${requestId.replace(/^req_/, '')}`
}

/**
 * The digest under which an item's id is stored. Clients choose ids freely, so the text of an id is not stored
 * (contract 12.3).
 */
export function itemDigest(accountId: string, itemId: string): string {
  return createHash('sha256')
    .update(JSON.stringify([accountId, itemId]))
    .digest('base64url')
}
