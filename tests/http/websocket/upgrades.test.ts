import { once } from 'node:events'
import { beforeEach, describe, expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { linksFor } from '../../../src/domain/links.ts'
import { expectRefusal, expectUsage } from '../../refusals.ts'
import type { Service } from '../../service.ts'
import { shareService } from '../../shared-service.ts'
import { refusedUpgrade, SocketClient } from '../../socket-client.ts'
import { refused, unauthorized } from '../../spec/refusal-row.ts'
import { Wire, type Answer } from '../../wire.ts'

/** The connection limit of one account. */
const mostOfAccount = 256

const share = shareService({ formats: ['openai-responses'] })
let service: Service

beforeEach(async () => {
  service = await share()
})

const usual = {
  host: 'x',
  connection: 'Upgrade',
  upgrade: 'websocket',
  'user-agent': 'svc-router-tests/1.0',
  'sec-websocket-version': '13',
  'sec-websocket-key': 'MDEyMzQ1Njc4OWFiY2RlZg==',
}

/** Sends an upgrade with changed headers; undefined removes one. */
async function upgrade(
  headers: Readonly<Record<string, string | undefined>>,
  line = 'GET /v1/responses',
): Promise<Answer> {
  const all = { ...usual, authorization: `Bearer ${service.key}`, ...headers }
  const lines = Object.entries(all).flatMap(([name, value]) => (value === undefined ? [] : [`${name}: ${value}\r\n`]))
  const wire = await Wire.open(service.origin)
  await wire.write(`${line} HTTP/1.1\r\n${lines.join('')}\r\n`)
  const answer = await wire.answer()
  wire.destroy()
  return answer
}

test('an upgrade has a request ID and the account’s counters, uses no compression, and is not charged', async () => {
  const client = await SocketClient.open(service)
  expect(client.headers.get('x-request-id')).toMatch(/^req_[0-9A-Za-z]{24}$/)
  expect(expectUsage(client.headers)).toMatchObject({ 'x-quota-used': 0, 'x-ratelimit-remaining': 600 })
  expect(client.headers.has('sec-websocket-extensions')).toBe(false)
  expect(client.socket.extensions).toBe('')
  await client.close()
  expect(await service.store.listRequests({ limit: 1 })).toEqual([])
})

describe('a rejected upgrade is an ordinary response', () => {
  test('the key is missing', async () => {
    const answer = await refusedUpgrade(service, { key: undefined })
    const links = linksFor(service.config.appUrl)
    expectRefusal(answer, { ...unauthorized, code: 'key_missing', link: links.accountSetupUrl }, links)
  })

  test('the key is revoked', async () => {
    const { key, stored } = await service.addAccount('leaver', 'max')
    await service.revoke(stored.id)
    const answer = await refusedUpgrade(service, { key })
    const links = linksFor(service.config.appUrl)
    expectRefusal(answer, { ...unauthorized, code: 'key_revoked', link: links.accountUrl }, links)
  })

  test.each([
    ['sec-websocket-key', undefined],
    ['sec-websocket-key', 'short'],
    ['sec-websocket-version', undefined],
    ['sec-websocket-version', '7'],
  ])('the header %s is %s', async (name, value) => {
    const answer = await upgrade({ [name]: value })
    expectRefusal(answer, { ...refused, code: 'invalid_request', param: name }, linksFor(service.config.appUrl))
  })

  test('there are two keys', async () => {
    const answer = await upgrade({ Authorization: 'Bearer another' })
    expect(answer.status).toBe(400)
    expect(answer.text).toContain('duplicate_header')
  })

  test('the method is not GET', async () => {
    const answer = await upgrade({}, 'PUT /v1/responses')
    expect(answer.status).toBe(405)
    expect(answer.headers.get('allow')).toBe('GET, OPTIONS')
  })

  test('the request has a body', async () => {
    const answer = await upgrade({ 'content-length': '5' })
    expect(answer.status).toBeGreaterThanOrEqual(400)
    expect(answer.status).toBeLessThan(500)
  })

  test('at the connection limit of an account, clients are told to use HTTP, and other accounts can connect', async () => {
    const url = `${service.baseUrl.replace('http', 'ws')}/responses`
    const headers = { authorization: `Bearer ${service.key}` }
    const sockets = Array.from({ length: mostOfAccount }, () => new WebSocket(url, { headers }))
    await Promise.all(sockets.map((socket) => once(socket, 'open')))
    const answer = await refusedUpgrade(service)
    const wanted = { ...refused, status: 426, code: 'upgrade_required', link: `${service.baseUrl}/responses` }
    expectRefusal(answer, wanted, linksFor(service.config.appUrl))
    const { key } = await service.addAccount('another', 'max')
    await (await SocketClient.open(service, { key })).close()
    sockets[0]!.close()
    await once(sockets[0]!, 'close')
    await expect
      .poll(async () =>
        (await SocketClient.open(service)).close().then(
          () => true,
          () => false,
        ),
      )
      .toBe(true)
    for (const socket of sockets) socket.terminate()
  })
})

test('no subprotocol is selected, so that none in which a client sends its key is echoed', async () => {
  const wire = await Wire.open(service.origin)
  const headers = Object.entries({ ...usual, authorization: `Bearer ${service.key}`, 'sec-websocket-protocol': 'a, b' })
  await wire.write(
    `GET /v1/responses HTTP/1.1\r\n${headers.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n`,
  )
  await expect.poll(() => wire.bytes).toMatch(/^HTTP\/1\.1 101 [\s\S]*\r\n\r\n$/)
  expect(wire.bytes.toLowerCase()).not.toContain('sec-websocket-protocol')
  wire.destroy()
})
