import type { NewConversationItem, StoredConversation, StoredConversationItem } from '../../domain/conversations.ts'

/**
 * Why items were not appended: `not_found` (the conversation does not exist), `duplicate` (an id is already in use),
 * `full` (the conversation's own limits), `no_room` (the account's limit on stored text).
 */
export type AppendFailure = 'not_found' | 'duplicate' | 'full' | 'no_room'

export interface AppendOptions {
  readonly nowMs: number
  readonly sinceMs: number
  readonly maxItems: number
  readonly maxBytes: number
  /** Skips items that already exist instead of rejecting them. */
  readonly skipsDuplicates: boolean
}

/** One page of a conversation's items. */
export interface ItemPage {
  readonly order: 'asc' | 'desc'
  readonly limit: number
  /** Lists the items after the one with this digest. */
  readonly afterDigest?: string | undefined
}

/**
 * Stores conversations (contract 13). Every call is scoped to one account and ignores conversations last used at or
 * before `sinceMs`. A rejected promise means that the store is unavailable.
 */
export interface ConversationStore {
  /** Resolves to false if the account has no room for it. */
  add(conversation: StoredConversation): Promise<boolean>
  find(accountId: string, id: string, sinceMs: number): Promise<StoredConversation | undefined>
  /** Replaces the metadata; undefined if the conversation does not exist. */
  update(
    accountId: string,
    id: string,
    sealedMetadata: string,
    times: { readonly nowMs: number; readonly sinceMs: number },
  ): Promise<StoredConversation | undefined>
  /** Deletes a conversation with its items; false if it does not exist. */
  remove(accountId: string, id: string, sinceMs: number): Promise<boolean>
  /** Appends all items consecutively, or none; undefined on success. Counts as a use. */
  append(
    accountId: string,
    id: string,
    items: readonly NewConversationItem[],
    options: AppendOptions,
  ): Promise<AppendFailure | undefined>
  /** Undefined if the item of `afterDigest` is not in the conversation. */
  listItems(accountId: string, id: string, page: ItemPage): Promise<readonly StoredConversationItem[] | undefined>
  findItem(accountId: string, id: string, digest: string): Promise<StoredConversationItem | undefined>
  /** Deletes these items; resolves to the number deleted. */
  removeItems(accountId: string, id: string, digests: readonly string[]): Promise<number>
}
