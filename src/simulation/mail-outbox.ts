import type { Mail, SendMail } from '../accounts/ports.ts'
import type { Clock } from '../runtime/clock.ts'

/** Maximum number of emails in the outbox; the oldest is dropped first. */
const maxMails = 50

/** An email that was not sent, and when it would have been. */
export interface KeptMail extends Mail {
  readonly sentAtMs: number
}

/** Replaces the mail server in local mode: emails stay in memory and are shown on a page, newest first. */
export function openOutbox(clock: Pick<Clock, 'nowMs'>): { readonly send: SendMail; list(): readonly KeptMail[] } {
  const mails: KeptMail[] = []
  return {
    send(mail) {
      mails.unshift({ ...mail, sentAtMs: clock.nowMs() })
      mails.length = Math.min(mails.length, maxMails)
      return Promise.resolve()
    },
    list: () => mails,
  }
}
