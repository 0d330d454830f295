/** The ledger cannot record anything just now: nothing is admitted and nothing that is not recorded may be delivered. */
export class LedgerUnavailable extends Error {
  override readonly name = 'LedgerUnavailable'

  constructor() {
    super('the ledger cannot record requests just now')
  }
}
