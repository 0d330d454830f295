/** The ledger cannot record anything right now: nothing is admitted, and nothing unrecorded may be delivered. */
export class LedgerUnavailable extends Error {
  override readonly name = 'LedgerUnavailable'

  /** `cause` is for a debugger; it is never written anywhere. */
  constructor(cause?: unknown) {
    super('the ledger cannot record requests right now', { cause })
  }
}
