import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openSession } from '../../src/accounts/identity/sessions.ts'
import type { Mail } from '../../src/accounts/ports.ts'
import { fileTicket } from '../../src/accounts/support/support.ts'
import { harmless, secrets } from '../domain/forbidden-samples.ts'
import type { Service } from '../service.ts'
import { startWeb, Visitor } from './browser-less.ts'

const canary = 'sk-canary-0000111122223333abcd'
const good = {
  email: 'asker@example.com',
  request_id: 'req_0VQ3xS8k00aB7cD9eF1gH3jK',
  text: 'Every request fails since noon.',
}
let service: Service
let visitor: Visitor
beforeAll(async () => {
  ;({ service, visitor } = await startWeb())
})
afterAll(() => service.stop())

test('a message is stored with its request and account, and its sender learns its number', async () => {
  const response = await visitor.post('/support', good)
  const text = await response.text()
  const [ticket] = await service.store.listTickets(10)
  expect([response.status, text.includes(ticket!.id)]).toEqual([200, true])
  expect(ticket).toMatchObject({ accountId: null, replyTo: good.email, requestId: good.request_id, text: good.text })
  const owner = new Visitor(service.config.appUrl)
  const accountsDeps = { ...service.accountsDeps, store: service.store }
  const { token } = await openSession(accountsDeps, service.account.id, { method: 'link', agent: 'Tests' })
  owner.cookie = `svc_session=${token.reveal()}`
  await owner.post('/support', { ...good, request_id: '' })
  expect((await service.store.listTickets(10))[0]).toMatchObject({ accountId: service.account.id, requestId: null })
})

test.each([
  ['text', `My key ${canary} does not work.`],
  ['text', '{"role":"user","content":"canary of a customer, and more"}'],
  ['text', '{"messages": ["canary of a customer, and more"]}'],
  ['request_id', canary],
])(
  'a message with a secret in %s is rejected, stored nowhere, and shown to no one, including its sender',
  async (name, value) => {
    const before = await service.store.listTickets(100)
    const response = await visitor.post('/support', { ...good, [name]: value })
    const text = await response.text()
    expect(response.status).toBe(422)
    expect(text).toContain('Your message was not sent')
    expect(text).not.toContain('canary')
    expect(await service.store.listTickets(100)).toEqual(before)
    expect(JSON.stringify(service.events)).not.toContain('canary')
    for (const file of ['svc-router.db', 'svc-router.db-wal'])
      expect(readFileSync(`${service.config.dataDir}/${file}`).includes('canary')).toBe(false)
  },
)

test('every kind of secret is rejected on the server, too, whatever a page allowed, and ordinary text is accepted', async () => {
  const proxied = await startWeb({ settings: { app_listen: { port: 0, trusted_proxies: 1 } } })
  // Each from another network, because the number of messages from one network is limited.
  const send = async (text: string, index: number): Promise<[number, string]> => {
    const from = { 'x-forwarded-for': `198.51.100.${index}` }
    const response = await proxied.visitor.post('/support', { ...good, text }, from)
    return [response.status, await response.text()]
  }
  for (const [index, [kind, secret]] of secrets.entries()) {
    const [status, page] = await send(`It fails.\n${secret}\nHelp!`, index)
    expect([status, page.includes(kind)], secret).toEqual([422, true])
  }
  expect(await proxied.service.store.listTickets(10)).toEqual([])
  for (const [index, text] of harmless.entries()) expect((await send(text, index + 100))[0], text).toBe(200)
  await proxied.service.stop()
})

test.each([
  [{ email: 'nobody' }, 'Enter a valid email address'],
  [{ request_id: '12345' }, 'Request IDs start with req_'],
  [{ text: 'short' }, 'Write between 10 and 4000 characters'],
])('an error is shown at its field, and the rest of the form stays filled in: %o', async (change, sentence) => {
  const response = await visitor.post('/support', { ...good, ...change })
  const text = await response.text()
  expect(response.status).toBe(422)
  expect(text).toContain(sentence)
  if (!('text' in change)) expect(text).toContain(good.text)
})

test('the operator gets an email if an address is configured; without mail the message is still stored', async () => {
  const letters: Mail[] = []
  const supportDeps = {
    store: service.store,
    clock: service.accountsDeps.clock,
    random: service.accountsDeps.random,
    mailTo: 'ops@example.com',
  }
  const form = { accountId: null, email: good.email, requestId: '', text: good.text }
  const sendMail = (mail: Mail): Promise<void> => {
    letters.push(mail)
    return letters.length === 1 ? Promise.resolve() : Promise.reject(new Error('no mail server'))
  }
  await fileTicket({ ...supportDeps, sendMail }, form)
  expect(letters).toMatchObject([{ to: 'ops@example.com', text: expect.stringContaining(good.text) as string }])
  expect(await fileTicket({ ...supportDeps, sendMail }, form)).toMatchObject({ replyTo: good.email })
  expect(await fileTicket({ ...supportDeps, sendMail: undefined }, form)).toMatchObject({ replyTo: good.email })
})

test('messages are deleted after half a year, and the oldest ones if there are too many', async () => {
  const ticket = (id: string, createdAtMs: number) => ({
    id,
    accountId: null,
    replyTo: 'a@example.com',
    requestId: null,
    text: 'x',
    createdAtMs,
  })
  await service.store.addTicket(ticket('tic_1', 1), 0, 10_000)
  await service.store.addTicket(ticket('tic_zz2', 2), 2, 10_000)
  expect((await service.store.listTickets(100)).map(({ id }) => id)).not.toContain('tic_1')
  await service.store.addTicket(ticket('tic_zz3', 3), 0, 2)
  expect((await service.store.listTickets(100)).map(({ id }) => id)).toEqual(['tic_zz3', 'tic_zz2'])
})

test('messages from one network are limited', async () => {
  const statuses: number[] = []
  // The limit is 20 in a fixed span, which may end in between.
  for (let count = 0; count < 41 && statuses.at(-1) !== 429; count++)
    statuses.push((await visitor.post('/support', { ...good, email: 'x' })).status)
  expect(statuses).toContain(429)
})
