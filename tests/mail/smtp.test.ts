import type { AddressInfo } from 'node:net'
import { createServer } from 'node:net'
import { SMTPServer } from 'smtp-server'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { ServiceEvent } from '../../src/domain/events.ts'
import { MailError } from '../../src/domain/mail-error.ts'
import { openSmtp } from '../../src/mail/smtp.ts'
import { Secret } from '../../src/runtime/secret.ts'

const password = 'made-up-password-of-mail'
const email = { to: 'somebody@example.com', subject: 'An email', text: 'code 123456\n' }

let received: string[]
let rejects: boolean
let server: SMTPServer
beforeEach(async () => {
  received = []
  rejects = false
  server = new SMTPServer({
    secure: false,
    disabledCommands: ['STARTTLS'],
    authOptional: false,
    allowInsecureAuth: true,
    onAuth: (auth, _, done) => done(auth.password === password ? null : new Error('no'), { user: auth.username }),
    onRcptTo: ({ address }, _, done) =>
      done(rejects ? Object.assign(new Error(`no such person: ${address}`), { responseCode: 550 }) : undefined),
    onData: (stream, _, done) => {
      let text = ''
      stream.setEncoding('utf8')
      stream.on('data', (chunk: string) => (text += chunk))
      stream.on('end', () => {
        received.push(text)
        done()
      })
    },
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
})
afterEach(() => new Promise<void>((resolve) => server.close(resolve)))

const settings = (more: object = {}) => ({
  host: '127.0.0.1',
  port: (server.server.address() as AddressInfo).port,
  security: 'none' as const,
  user: 'svc-router',
  password: new Secret(password),
  from: 'svc-router <no-reply@example.com>',
  ...more,
})

test('an email arrives as plain text from the configured sender', async () => {
  const smtp = openSmtp(settings(), () => {})
  await smtp.send(email)
  smtp.close()
  expect(received.length).toBe(1)
  expect(received[0]).toContain('<no-reply@example.com>')
  expect(received[0]).toContain('To: somebody@example.com')
  expect(received[0]).toContain('Content-Type: text/plain')
  expect(received[0]).toContain('code 123456')
})

test.each([
  ['a wrong password', { password: new Secret('another') }, /^(535|EAUTH)$/],
  ['an unreachable server', { port: 1 }, /^(ECONNREFUSED|ESOCKET|ECONNECTION)$/],
  ['a server without the required TLS', { security: 'starttls' as const }, /^(ETLS|\d{3}|ESOCKET)$/],
])('%s is reported by a code, without the email, the address, or the password', async (_, more, reason) => {
  const events: ServiceEvent[] = []
  const smtp = openSmtp(settings(more), (event) => void events.push(event))
  const error = await smtp.send(email).catch((thrown: unknown) => thrown)
  smtp.close()
  expect(error).toBeInstanceOf(MailError)
  expect((error as MailError).reason).toMatch(reason)
  expect(events).toEqual([{ event: 'mail_failing', reason: (error as MailError).reason }])
  expect(received).toEqual([])
})

test('an email about an event has the same ID each time, so that receivers can drop repeats', async () => {
  const smtp = openSmtp(settings(), () => {})
  for (let count = 0; count < 2; count += 1) await smtp.send({ ...email, eventId: 'bud_1-1799971200000-80' })
  smtp.close()
  const ids = received.map((text) => /^Message-ID: (.+)$/m.exec(text)?.[1]?.trim())
  expect(ids).toEqual(Array.from({ length: 2 }, () => '<bud_1-1799971200000-80@example.com>'))
})

test('a rejected address is not repeated in the error', async () => {
  rejects = true
  const events: ServiceEvent[] = []
  const smtp = openSmtp(settings(), (event) => void events.push(event))
  await expect(smtp.send(email)).rejects.toThrow(/^550$/)
  smtp.close()
  expect(JSON.stringify(events)).not.toContain('somebody')
})

test('a server that never answers is abandoned within seconds', async () => {
  const silent = createServer(() => {})
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve))
  const smtp = openSmtp(settings({ port: (silent.address() as AddressInfo).port }), () => {})
  const startedAtMs = performance.now()
  await expect(smtp.send(email)).rejects.toThrow(MailError)
  expect(performance.now() - startedAtMs).toBeLessThan(9_000)
  smtp.close()
  await new Promise((resolve) => silent.close(resolve))
})
