import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { deleteAccount } from '../../src/accounts/delete-account.ts'
import { openSession } from '../../src/accounts/identity/sessions.ts'
import { addUpstream } from '../../src/accounts/upstreams.ts'
import { sealingKeys } from '../../src/config/sealing-keys.ts'
import { openProviderErrors } from '../../src/domain/provider-error.ts'
import { systemRandom } from '../../src/runtime/random.ts'
import { createSealer } from '../../src/runtime/sealer.ts'
import { type Service } from '../service.ts'
import { startWeb, Visitor } from './browser-less.ts'

const reason = 'max_tokens=100000 cannot be greater than max_model_len=4096'
const leaked = 'sk-proj-abc123def456ghi789jkl012'
let service: Service
let visitor: Visitor
let server: Server
/** `rest` follows the body a little later. */
let answer: { readonly status: number; readonly type: string; readonly body: string; readonly rest?: string }

beforeEach(async () => {
  answer = {
    status: 400,
    type: 'application/json',
    body: JSON.stringify({ error: { message: `${reason} \u001b[2J\u202e key ${leaked}` } }),
  }
  server = createServer((request, response) => {
    request.resume().on('end', () => {
      response.writeHead(answer.status, { 'content-type': answer.type })
      if (answer.rest === undefined) response.end(answer.body)
      else {
        response.write(answer.body)
        setTimeout(() => response.end(answer.rest), 150)
      }
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  ;({ service, visitor } = await startWeb())
  visitor.cookie = await cookieOf(service.account.id)
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`
  const draft = {
    provider: 'custom',
    model: 'm',
    baseUrl,
    format: 'openai-chat',
    authHeader: null,
    credential: undefined,
  }
  await addUpstream(service.accountsDeps, service.account.id, draft as never, () => '')
  await new Promise((resolve) => setTimeout(resolve, 400))
})
afterEach(async () => {
  await service.stop()
  server.close()
})

async function cookieOf(accountId: string): Promise<string> {
  const accountsDeps = { ...service.accountsDeps, store: service.store }
  const { token } = await openSession(accountsDeps, accountId, { method: 'link', agent: 'Tests' })
  return `svc_session=${token.reveal()}`
}

function kept(requestId: string, accountId: string | null) {
  return service.store.listProviderErrors(requestId, accountId)
}

test('only the owner of a provider reads its error message in the trail', async () => {
  const response = await service.chat()
  const body = await response.text()
  const id = response.headers.get('x-request-id') ?? ''
  await expect.poll(async () => (await kept(id, service.account.id)).length).toBe(1)
  const page = await (await visitor.get(`/activity/${id}`)).text()
  expect(page).toContain(reason)
  // Credentials are masked, and nothing in the message steers a terminal.
  expect(page).not.toContain(leaked)
  const sealer = createSealer({ ...sealingKeys(service.config.secrets), random: systemRandom() })
  const [opened] = openProviderErrors(sealer, await kept(id, service.account.id))
  expect(opened?.text).not.toMatch(/[\p{Cc}\p{Bidi_Control}]/u)
  // It is not in the response, the log, the record, or the audit log, nor in plaintext in the database.
  const [row] = await kept(id, service.account.id)
  const elsewhere = [
    body,
    JSON.stringify(service.events),
    JSON.stringify(await service.store.findRequest(id)),
    JSON.stringify(await service.store.listAudit({ limit: 100 })),
    JSON.stringify(row),
    await (await visitor.get(`/activity/${id}/record.json`)).text(),
  ]
  for (const text of elsewhere) expect(text).not.toContain('max_model_len')
  // Neither another account nor the operator of the service can read it.
  const { account: other } = await service.addAccount('someone else', 'free')
  const stranger = new Visitor(service.config.appUrl)
  stranger.cookie = await cookieOf(other.id)
  expect((await stranger.get(`/activity/${id}`)).status).toBe(404)
  expect(await kept(id, other.id)).toEqual([])
  expect(await kept(id, null)).toEqual([])
})

test('an error event before content is stored, too', async () => {
  answer = { status: 200, type: 'text/event-stream', body: `data: {"error":{"message":"${reason}"}}\n\n` }
  const response = await service.chat({ stream: true })
  const id = response.headers.get('x-request-id') ?? ''
  await response.text()
  await expect.poll(async () => (await kept(id, service.account.id)).length).toBe(1)
  expect(await (await visitor.get(`/activity/${id}`)).text()).toContain(reason)
})

test.each([
  ['an error event', `data: {"error":{"message":"${reason}"}}\n\n`],
  ['an event that is named error', `event: error\ndata: {"detail":"${reason}"}\n\n`],
])('%s after content is stored, without any text of the answer', async (_, last) => {
  const content = 'data: {"id":"c","choices":[{"index":0,"delta":{"content":"words of the answer"}}]}\n\n'
  answer = { status: 200, type: 'text/event-stream', body: content, rest: `${content}${last}` }
  const response = await service.chat({ stream: true })
  const id = response.headers.get('x-request-id') ?? ''
  const text = await response.text()
  expect(text).toContain('words of the answer')
  expect(text).not.toContain(reason)
  await expect.poll(async () => (await kept(id, service.account.id)).length).toBe(1)
  const page = await (await visitor.get(`/activity/${id}`)).text()
  expect(page).toContain(reason)
  expect(page).not.toContain('words of the answer')
})

test('an invalid event that is not an error is not stored, because it may be part of the answer', async () => {
  const content = 'data: {"id":"c","choices":[{"index":0,"delta":{"content":"words of the answer"}}]}\n\n'
  answer = { status: 200, type: 'text/event-stream', body: content, rest: `${content.slice(0, -20)}\n\n` }
  const response = await service.chat({ stream: true })
  const id = response.headers.get('x-request-id') ?? ''
  expect(await response.text()).toContain('error')
  await new Promise((resolve) => setTimeout(resolve, 1_000))
  expect(await kept(id, service.account.id)).toEqual([])
})

test('errors of configured backends are visible only to the operator', async () => {
  // The account's own provider fails in a way that causes a failover.
  answer = { ...answer, status: 500 }
  service.providers[0]!.script([
    { do: 'status', status: 400, body: JSON.stringify({ error: { message: 'of the operator' } }) },
  ])
  const response = await service.chat()
  await response.text()
  const id = response.headers.get('x-request-id') ?? ''
  await expect.poll(async () => (await kept(id, null)).length).toBe(1)
  const page = await (await visitor.get(`/activity/${id}`)).text()
  expect(page).toContain(reason)
  expect(page).not.toContain('of the operator')
})

test('error messages are deleted after their retention, and with their account', async () => {
  const response = await service.chat()
  await response.text()
  const id = response.headers.get('x-request-id') ?? ''
  await expect.poll(async () => (await kept(id, service.account.id)).length).toBe(1)
  expect(await service.store.deleteProviderErrorsBefore(Date.now() - 1_000, 10)).toBe(0)
  expect(await service.store.deleteProviderErrorsBefore(Date.now() + 1_000, 10)).toBe(1)
  answer = { ...answer, status: 500 }
  service.providers[0]!.script([{ do: 'status', status: 400, body: JSON.stringify({ error: 'of the operator' }) }])
  const second = await service.chat()
  await second.text()
  const secondId = second.headers.get('x-request-id') ?? ''
  await expect.poll(async () => (await kept(secondId, null)).length).toBe(1)
  // By then the request has a record, which leads to the operator's messages about it.
  await expect.poll(() => service.store.findRequest(secondId)).toBeDefined()
  await deleteAccount({ ...service.accountsDeps, store: service.store }, service.account.id, service.account.name)
  expect(await kept(secondId, service.account.id)).toEqual([])
  expect(await kept(secondId, null)).toEqual([])
})
