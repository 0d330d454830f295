import type { NewConversationItem, StoredConversation, StoredConversationItem } from '../domain/conversations.ts'

/**
 * Why items were not appended: `gone` (no such conversation), `duplicate` (an id is there already), `full` (the
 * conversation's own limits), `no_room` (the account's limit of stored text).
 */
export type AppendRefusal = 'gone' | 'duplicate' | 'full' | 'no_room'

export interface AppendOptions {
  readonly nowMs: number
  readonly sinceMs: number
  readonly maxItems: number
  readonly maxBytes: number
  /** Skips items that are there already instead of refusing them. */
  readonly skipsDuplicates: boolean
}

/** One page of a conversation's items. */
export interface ItemPage {
  readonly order: 'asc' | 'desc'
  readonly limit: number
  /** Lists what comes after the item of this digest. */
  readonly afterDigest?: string | undefined
}

/**
 * Conversations (contract 13). Every call is for one account and finds nothing that was last used at or before
 * `sinceMs`. A throw means that the store cannot answer.
 */
export interface ConversationStore {
  /** False where the account has no room for it. */
  add(conversation: StoredConversation): Promise<boolean>
  find(accountId: string, id: string, sinceMs: number): Promise<StoredConversation | undefined>
  /** Replaces the metadata; undefined where there is no such conversation. */
  update(
    accountId: string,
    id: string,
    sealedMetadata: string,
    times: { readonly nowMs: number; readonly sinceMs: number },
  ): Promise<StoredConversation | undefined>
  /** Deletes a conversation with its items; false where there is none. */
  remove(accountId: string, id: string, sinceMs: number): Promise<boolean>
  /** Appends all items, next to each other, or none; undefined when done. Counts as a use. */
  append(
    accountId: string,
    id: string,
    items: readonly NewConversationItem[],
    options: AppendOptions,
  ): Promise<AppendRefusal | undefined>
  /** Undefined where the item of `afterDigest` is not in the conversation. */
  listItems(accountId: string, id: string, page: ItemPage): Promise<readonly StoredConversationItem[] | undefined>
  findItem(accountId: string, id: string, digest: string): Promise<StoredConversationItem | undefined>
  /** Deletes those items; gives how many there were. */
  removeItems(accountId: string, id: string, digests: readonly string[]): Promise<number>
}
