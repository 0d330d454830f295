/** An email that could not be sent. Has a code such as `ETIMEDOUT` or `550`, and nothing from the email. */
export class MailError extends Error {
  override readonly name = 'MailError'
  readonly reason: string

  constructor(reason: string) {
    super(reason)
    this.reason = reason
  }
}
