import type { Clock } from '../domain/clock.ts'
import { findForbidden } from '../domain/forbidden-text.ts'
import { idMinter } from '../domain/ids.ts'
import { readEmailAddress } from '../domain/identity.ts'
import type { RandomBytes } from '../domain/random.ts'
import type { NewTicket } from '../domain/tickets.ts'
import type { SendMail } from './ports.ts'
import type { SupportStore } from './support-ports.ts'

/** The bounds of what is asked (contract 27.1). */
const minTextCharacters = 10
export const maxTextCharacters = 4_000
const maxRequestIdCharacters = 100
/** Tickets are kept this long, and at most so many: the oldest give way (contract 27.1). */
const keptMs = 180 * 86_400_000
const maxKept = 10_000
const requestIdShape = /^req_[0-9A-Za-z]{10,40}$/

export interface SupportDesk {
  readonly store: Pick<SupportStore, 'addTicket'>
  readonly clock: Pick<Clock, 'nowMs'>
  readonly random: RandomBytes
  /** Whom tickets are sent to, besides being kept; undefined where nobody is. */
  readonly mailTo: string | undefined
  readonly sendMail: SendMail | undefined
}

/** What is wrong with a ticket: its field, and for the text what it must not hold. */
export type TicketFault =
  | { readonly field: 'email' | 'request_id' | 'text'; readonly found?: undefined }
  | { readonly field: 'text'; readonly found: readonly string[] }

interface TicketForm {
  readonly accountId: string | null
  readonly email: string
  readonly requestId: string
  readonly text: string
}

/** Keeps what is asked and tells the operator; nothing is kept of what holds a secret or a conversation. */
export async function fileTicket(desk: SupportDesk, form: TicketForm): Promise<NewTicket | TicketFault> {
  // What is far too long is not even looked through.
  if (form.text.length > maxTextCharacters) return { field: 'text' }
  if (form.requestId.length > maxRequestIdCharacters) return { field: 'request_id' }
  const found = findForbidden(`${form.text}\n${form.requestId}`)
  if (found.length > 0) return { field: 'text', found }
  const replyTo = readEmailAddress(form.email)
  if (replyTo === undefined) return { field: 'email' }
  if (form.requestId !== '' && !requestIdShape.test(form.requestId)) return { field: 'request_id' }
  if (form.text.length < minTextCharacters) return { field: 'text' }
  const nowMs = Math.floor(desk.clock.nowMs())
  const ticket: NewTicket = {
    id: idMinter('tic_', () => nowMs, desk.random)(),
    accountId: form.accountId,
    replyTo,
    requestId: form.requestId === '' ? null : form.requestId,
    text: form.text,
    createdAtMs: nowMs,
  }
  await desk.store.addTicket(ticket, nowMs - keptMs, maxKept)
  // It is kept: a letter that fails is told in the log by what sends, and the ticket is there.
  if (desk.mailTo !== undefined) await desk.sendMail?.(letterOf(ticket, desk.mailTo)).catch(() => undefined)
  return ticket
}

function letterOf({ id, accountId, replyTo, requestId, text }: NewTicket, to: string) {
  const lines = [
    `From:    ${replyTo}`,
    `Account: ${accountId ?? 'not signed in'}`,
    `Request: ${requestId ?? 'none named'}`,
    '',
    text,
    '',
  ]
  return { to, subject: `svc-router support: ${id}`, text: lines.join('\n') }
}
