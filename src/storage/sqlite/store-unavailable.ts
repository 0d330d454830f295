/** The database did not answer in time, has too many pending queries, or its thread has ended. */
export class StoreUnavailable extends Error {
  override readonly name = 'StoreUnavailable'
}
