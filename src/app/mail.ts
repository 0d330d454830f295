import type { SendMail } from '../accounts/ports.ts'
import { openOutbox } from '../simulation/mail-outbox.ts'
import type { WebDeps } from '../web/web-deps.ts'
import type { Runtime } from './runtime.ts'

/** Sends email, or collects it in an outbox that the web app shows. */
export interface OpenedMail extends Pick<WebDeps, 'sendMail' | 'outbox'>, Disposable {}

/** Uses the configured mail server. Without one, local mode has an outbox and production sends no email. */
export async function openMail({ config, clock, log }: Runtime): Promise<OpenedMail> {
  if (config.mail !== undefined) {
    // Loaded only if needed: the library takes memory that most deployments can save.
    const { openSmtp } = await import('../mail/smtp.ts')
    const smtp = openSmtp(config.mail, log)
    return { sendMail: smtp.send satisfies SendMail, outbox: undefined, [Symbol.dispose]: () => smtp.close() }
  }
  if (config.mode === 'production') return { sendMail: undefined, outbox: undefined, [Symbol.dispose]: () => {} }
  const outbox = openOutbox(clock)
  return { sendMail: outbox.send, outbox, [Symbol.dispose]: () => {} }
}
