import { findForbidden } from '../../domain/forbidden-text.ts'
import { readEmailAddress } from '../../domain/identity.ts'
import type { NewTicket } from '../../domain/tickets.ts'
import type { Clock } from '../../runtime/clock.ts'
import { dayMs } from '../../runtime/durations.ts'
import { idMinter } from '../../runtime/ids.ts'
import type { RandomBytes } from '../../runtime/random.ts'
import type { SendMail } from '../ports.ts'
import type { SupportStore } from './support-ports.ts'

/** Length limits of a ticket (contract 27.1). */
const minTextCharacters = 10
export const maxTextCharacters = 4_000
const maxRequestIdCharacters = 100
/** How long tickets are stored, and how many; the oldest are deleted first (contract 27.1). */
const retentionMs = 180 * dayMs
const maxStored = 10_000
const requestIdShape = /^req_[0-9A-Za-z]{10,40}$/

export interface SupportDeps {
  readonly store: Pick<SupportStore, 'addTicket'>
  readonly clock: Pick<Clock, 'nowMs'>
  readonly random: RandomBytes
  /** Where tickets are emailed, besides being stored; undefined for nowhere. */
  readonly mailTo: string | undefined
  readonly sendMail: SendMail | undefined
}

/** Why a ticket is rejected: the invalid field, or what its text must not contain. */
export type TicketFault =
  | { readonly field: 'email' | 'request_id' | 'text'; readonly found?: undefined }
  | { readonly field: 'text'; readonly found: readonly string[] }

interface TicketForm {
  readonly accountId: string | null
  readonly email: string
  readonly requestId: string
  readonly text: string
}

/** Stores a ticket and emails the operator; a text that contains a secret or a conversation is not stored. */
export async function fileTicket(deps: SupportDeps, form: TicketForm): Promise<NewTicket | TicketFault> {
  // Do not scan a text that is far too long.
  if (form.text.length > maxTextCharacters) return { field: 'text' }
  if (form.requestId.length > maxRequestIdCharacters) return { field: 'request_id' }
  const found = findForbidden(`${form.text}\n${form.requestId}`)
  if (found.length > 0) return { field: 'text', found }
  const replyTo = readEmailAddress(form.email)
  if (replyTo === undefined) return { field: 'email' }
  if (form.requestId !== '' && !requestIdShape.test(form.requestId)) return { field: 'request_id' }
  if (form.text.length < minTextCharacters) return { field: 'text' }
  const nowMs = Math.floor(deps.clock.nowMs())
  const ticket: NewTicket = {
    id: idMinter('tic_', () => nowMs, deps.random)(),
    accountId: form.accountId,
    replyTo,
    requestId: form.requestId === '' ? null : form.requestId,
    text: form.text,
    createdAtMs: nowMs,
  }
  await deps.store.addTicket(ticket, nowMs - retentionMs, maxStored)
  // The ticket is stored: if the email fails, the sender logs that.
  if (deps.mailTo !== undefined) await deps.sendMail?.(emailFor(ticket, deps.mailTo)).catch(() => undefined)
  return ticket
}

function emailFor({ id, accountId, replyTo, requestId, text }: NewTicket, to: string) {
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
