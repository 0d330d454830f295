import type { ItemPlace, StoredResponse, StoredTurn } from '../domain/stored-responses.ts'

/**
 * Answers that are kept (contract 12.1). Every read is of one account, and gives nothing made at or before `sinceMs`:
 * what has expired is gone even before it is swept. A throw means that the store cannot answer.
 */
export interface ResponseStore {
  /**
   * Resolves when the answer survives the end of the process, with true, or with false where its account has no room for it.
   * Older answers of the account may go to make room. `itemDigests` are the items by which it may be found.
   */
  save(response: StoredResponse, itemDigests: readonly string[]): Promise<boolean>
  find(accountId: string, id: string, sinceMs: number): Promise<StoredResponse | undefined>
  /** The answer and those that it went on from, newest first, at most `maxLinks`; it ends where one is missing. */
  chain(accountId: string, id: string, sinceMs: number, maxLinks: number): Promise<readonly StoredTurn[]>
  /** Where these items stand, newest answers first; at most `limit` places. */
  places(
    accountId: string,
    itemDigests: readonly string[],
    sinceMs: number,
    limit: number,
  ): Promise<readonly ItemPlace[]>
  /** Forgets an answer and its items; false where the account has none of that id. */
  remove(accountId: string, id: string, sinceMs: number): Promise<boolean>
}
