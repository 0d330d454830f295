import type { Mail, SendMail } from '../accounts/ports.ts'
import type { Clock } from '../domain/clock.ts'

/** Letters that are kept; the oldest goes first. */
const maxLetters = 50

/** A letter that was not sent, and when it would have been. */
export interface KeptMail extends Mail {
  readonly sentAtMs: number
}

/** What stands in for a mail server in local mode: letters stay in memory, to be read on a page. Newest first. */
export function openOutbox(clock: Pick<Clock, 'nowMs'>): { readonly send: SendMail; list(): readonly KeptMail[] } {
  const letters: KeptMail[] = []
  return {
    send(mail) {
      letters.unshift({ ...mail, sentAtMs: clock.nowMs() })
      letters.length = Math.min(letters.length, maxLetters)
      return Promise.resolve()
    },
    list: () => letters,
  }
}
