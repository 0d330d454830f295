/** A conversation as it is stored (contract 13). Times are epoch milliseconds. */
export interface StoredConversation {
  /** `conv_…` */
  readonly id: string
  readonly accountId: string
  readonly createdAtMs: number
  /** Retention counts from here. */
  readonly lastUsedAtMs: number
  /** How many items it has. */
  readonly items: number
  /** JSON text of its items. */
  readonly bytes: number
  readonly sealedMetadata: string
}

/** An item to append. */
export interface NewConversationItem {
  /** `itemDigest` of its id; unique within its conversation. */
  readonly digest: string
  /** Length of its JSON text. */
  readonly bytes: number
  readonly sealed: string
}

/** An item as it is stored. Positions ascend in the order of appending and are never reused. */
export interface StoredConversationItem {
  readonly position: number
  readonly sealed: string
}
