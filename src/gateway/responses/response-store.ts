import type { ItemLocation, StoredResponse, StoredTurn } from '../../domain/stored-responses.ts'

/**
 * Stores answers (contract 12.1). Every read is scoped to one account (contract 12.4) and ignores answers created at or
 * before `sinceMs`, so an expired answer is invisible even before it is swept. A rejected promise means that the store
 * is unavailable.
 */
export interface ResponseStore {
  /**
   * Resolves when the answer is durable: true, or false if the account has no room for it. May delete older answers
   * of the account to make room. `itemDigests` are the items by which it can be found.
   */
  save(response: StoredResponse, itemDigests: readonly string[]): Promise<boolean>
  find(accountId: string, id: string, sinceMs: number): Promise<StoredResponse | undefined>
  /** The answer and its predecessors, newest first, at most `maxLinks`; ends where one is missing. */
  chain(accountId: string, id: string, sinceMs: number, maxLinks: number): Promise<readonly StoredTurn[]>
  /** Locations of these items, newest answers first; at most `limit`. */
  locations(
    accountId: string,
    itemDigests: readonly string[],
    sinceMs: number,
    limit: number,
  ): Promise<readonly ItemLocation[]>
  /** Deletes an answer and its items; false if the account has no answer with that id. */
  remove(accountId: string, id: string, sinceMs: number): Promise<boolean>
}
