/**
 * The database did not answer in time, has too many pending queries, its thread has ended, or its disk is full,
 * failing, or read-only. Not a bug: the caller may try again later (contract 20.13).
 */
export class StoreUnavailable extends Error {
  override readonly name = 'StoreUnavailable'
}
