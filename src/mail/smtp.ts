import { createTransport } from 'nodemailer'
import type { Mail, SendMail } from '../accounts/ports.ts'
import type { EventLog } from '../domain/events.ts'
import { MailError } from '../domain/mail-error.ts'
import type { Secret } from '../runtime/secret.ts'

/** A user is waiting for the page, so a mail server slower than this counts as down. */
const connectMs = 5_000
const greetingMs = 5_000
const silentMs = 10_000
const maxConnections = 4
const maxReasonCharacters = 40

/** How to reach the mail server. */
export interface SmtpSettings {
  readonly host: string
  readonly port: number
  /** `tls` from the first byte, `starttls` before any other command, `none` for a server on this machine. */
  readonly security: 'tls' | 'starttls' | 'none'
  readonly user: string | undefined
  readonly password: Secret | undefined
  /** `svc-router <no-reply@example.com>` */
  readonly from: string
}

/** Sends email by SMTP. The log records a failure by its code alone, never with the message or an address. */
export function openSmtp(settings: SmtpSettings, log: EventLog): { readonly send: SendMail; close(): void } {
  const { host, port, security, user, password, from } = settings
  const transport = createTransport({
    pool: true,
    maxConnections,
    host,
    port,
    secure: security === 'tls',
    requireTLS: security === 'starttls',
    ignoreTLS: security === 'none',
    ...(user === undefined ? {} : { auth: { user, pass: password?.reveal() ?? '' } }),
    connectionTimeout: connectMs,
    greetingTimeout: greetingMs,
    socketTimeout: silentMs,
    // Send only the given text, never a file or a page that it names.
    disableFileAccess: true,
    disableUrlAccess: true,
  })
  const senderDomain = /@([^>\s]+)/.exec(from)?.[1] ?? host
  return {
    async send({ to, subject, text, eventId }: Mail) {
      // Only characters that a Message-ID may have; every event ID consists of them.
      const messageId = eventId === undefined ? undefined : `<${eventId}@${senderDomain}>`
      try {
        await transport.sendMail({ from, to, subject, text, ...(messageId !== undefined && { messageId }) })
      } catch (error) {
        const reason = reasonOf(error)
        log({ event: 'mail_failing', reason })
        throw new MailError(reason)
      }
    },
    close: () => transport.close(),
  }
}

/** The server's status or the system's error code: their messages may contain the address. */
function reasonOf(error: unknown): string {
  const { responseCode, code } = error as { responseCode?: unknown; code?: unknown }
  const reason = typeof responseCode === 'number' ? String(responseCode) : code
  return typeof reason === 'string' && /^\w+$/.test(reason) ? reason.slice(0, maxReasonCharacters) : 'unknown'
}
