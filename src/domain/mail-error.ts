/** A letter that could not be sent. It carries a code such as `ETIMEDOUT` or `550`, and nothing of the letter. */
export class MailError extends Error {
  override readonly name = 'MailError'
  readonly reason: string

  constructor(reason: string) {
    super(reason)
    this.reason = reason
  }
}
