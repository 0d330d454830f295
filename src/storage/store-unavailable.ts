/** The database did not answer in time, is behind with too many queries, or its thread has ended. */
export class StoreUnavailable extends Error {
  override readonly name = 'StoreUnavailable'
}
