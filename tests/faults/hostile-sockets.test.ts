import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { SocketClient } from '../socket-client.ts'
import { Wire } from '../wire.ts'
import { HostileService, MiB } from './hostile-service.ts'
import { RawSocket, type Frame } from './raw-frames.ts'

/** Contract 9.10 and 9.11. */
const maxWaitingBytes = 256 * 1024
/** Memory of both ends of a connection, including what the test itself uses. */
const idleSocketBytes = 64 * 1024
const idleSockets = 1_000
/** The default limit on bodies. */
const bodyBytes = 5 * MiB

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

let hostile: HostileService
let accepted: Socket[] = []
const onSocket = (message: unknown): void => void accepted.push((message as { socket: Socket }).socket)

beforeAll(async () => {
  subscribe('net.server.socket', onSocket)
  hostile = await HostileService.start()
})
afterAll(async () => {
  unsubscribe('net.server.socket', onSocket)
  await hostile.service.stop()
})
afterEach(async () => {
  await hostile.expectUnharmed()
  accepted = []
})

const open = (): Promise<SocketClient> => SocketClient.open(hostile.service)
const openRaw = (): Promise<RawSocket> => RawSocket.open(hostile.service.origin, hostile.service.key)
/** Finds the service's end of a connection. */
const endOf = ({ socket }: RawSocket): Socket => accepted.find(({ remotePort }) => remotePort === socket.localPort)!

function heapBytes(): number {
  for (let round = 0; round < 3; round++) collect()
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

describe('an invalid message gets an error, and the connection stays open', () => {
  test.each([
    ['nothing', '', 'invalid_json'],
    ['half an object', '{"type":"response.create"', 'invalid_json'],
    ['a list', '[]', 'invalid_json'],
    ['a word', 'hello', 'invalid_json'],
    ['a byte order mark', '\ufeff{"type":"response.create"}', 'invalid_json'],
    ['bytes that are not text', Buffer.from([0x7b, 0xff, 0xfe, 0x7d]), 'invalid_json'],
    ['10,000 nested lists', `{"a":${'['.repeat(10_000)}${']'.repeat(10_000)}}`, 'invalid_request'],
    ['more than 300,000 values', `{"a":[${'0,'.repeat(300_001)}0]}`, 'invalid_request'],
    ['a field twice', '{"type":"response.create","type":"response.create"}', 'invalid_request'],
    ['no type', '{"model":"svc-router/frontier","input":"x"}', 'invalid_request'],
    ['an unknown type', `{"type":"${'x'.repeat(1_000)}"}`, 'invalid_request'],
    ['a type that is not a string', '{"type":{"a":1}}', 'invalid_request'],
  ])('%s', async (_, message, code) => {
    const client = await open()
    client.send(message)
    const error = await client.next()
    expect(error).toMatchObject({ type: 'error', status: 400, error: { code, source: 'client' } })
    expect(error.error!.message.length).toBeLessThanOrEqual(240)
    expect((await client.turn({ store: false })).last.type).toBe('response.completed')
    await client.close()
  })

  test('a message larger than the largest body', async () => {
    const client = await open()
    client.create({ input: 'x'.repeat(bodyBytes) })
    expect(await client.next()).toMatchObject({ type: 'error', status: 413, error: { code: 'payload_too_large' } })
    expect((await client.turn({ store: false })).last.type).toBe('response.completed')
    await client.close()
  })

  test('JSON in a binary frame is accepted like a text frame', async () => {
    const client = await open()
    client.send(Buffer.from(JSON.stringify({ type: 'response.create', model: 'svc-router/frontier', input: 'Hi' })))
    expect((await client.read()).last.type).toBe('response.completed')
    await client.close()
  })
})

describe('a protocol error closes the connection with the matching code', () => {
  const text = (payload: string, rest: Partial<Frame> = {}): Frame => ({ opcode: 1, payload, ...rest })
  test.each<readonly [string, readonly Frame[], number]>([
    ['a frame that says it has 10 GiB', [text('x', { length: 10 * 1024 * MiB })], 1009],
    [
      'a message of small pieces that is too large',
      Array.from({ length: 8 }, (_, index) => ({ opcode: index === 0 ? 1 : 0, payload: 'x'.repeat(MiB), fin: false })),
      1009,
    ],
    [
      'a message of 20,000 pieces',
      [text('x', { fin: false }), ...Array.from({ length: 20_000 }, () => ({ opcode: 0, payload: '', fin: false }))],
      1008,
    ],
    ['a frame without a mask', [text('{}', { masked: false })], 1002],
    ['an undefined opcode', [{ opcode: 3 }], 1002],
    ['a continuation of nothing', [{ opcode: 0, payload: 'x' }], 1002],
    ['a fragmented ping', [{ opcode: 9, fin: false }], 1002],
    ['a ping that is too long', [{ opcode: 9, payload: 'x'.repeat(126) }], 1002],
    ['invalid UTF-8 in a text frame', [{ opcode: 1, payload: Buffer.from([0xff, 0xfe]) }], 1007],
    ['an undefined close code', [{ opcode: 8, payload: Buffer.from([0, 1]) }], 1002],
  ])('%s', async (_, frames, code) => {
    const client = await openRaw()
    for (const one of frames) client.write(one)
    await expect.poll(() => client.closeCode).toBe(code)
    // The service closes the connection if the client does not.
    client.socket.end()
    await expect.poll(() => client.closed).toBe(true)
  })
})

describe('a client that sends without reading', () => {
  const create = JSON.stringify({ type: 'response.create', model: 'svc-router/frontier', input: 'Hi', store: false })

  test.each<readonly [string, Frame]>([
    ['pings', { opcode: 9, payload: 'x'.repeat(125) }],
    ['bad messages', { opcode: 1, payload: '{' }],
    ['model requests', { opcode: 1, payload: create }],
  ])(
    '%s: at most 256 KiB are queued before the connection closes, and other clients are served meanwhile',
    { timeout: 60_000 },
    async (_, one) => {
      const client = await openRaw()
      client.socket.pause()
      const end = endOf(client)
      const frames = Array.from({ length: 500 }, () => one)
      let mostWaiting = 0
      const startedMs = performance.now()
      for (let sent = 0; sent < 400 && !end.destroyed && performance.now() - startedMs < 5_000; sent++) {
        if (!client.write(...frames)) await delay(5)
        mostWaiting = Math.max(mostWaiting, end.writableLength)
      }
      const other = await open()
      expect((await other.turn({ store: false })).last.type).toBe('response.completed')
      expect(mostWaiting).toBeLessThanOrEqual(maxWaitingBytes)
      await other.close()
      client.socket.destroy()
      await expect.poll(() => end.destroyed).toBe(true)
    },
  )
})

describe('an upgrade that follows other requests on its connection', () => {
  const head = (line: string, rest: string): string =>
    `${line} HTTP/1.1\r\nhost: x\r\nuser-agent: t/1\r\nauthorization: Bearer ${hostile.service.key}\r\n${rest}\r\n`
  const upgrade = (): string =>
    head(
      'GET /v1/responses',
      'connection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n',
    )

  test.each([
    ['a running request', () => question() + upgrade()],
    ['another upgrade', () => upgrade() + upgrade()],
    ['a models request', () => head('GET /v1/models', '') + upgrade()],
  ])('an upgrade after %s affects no other client', async (_, bytes) => {
    hostile.service.providers[0]!.script([{ do: 'answer', words: 10, tokenDelayMs: 10 }])
    const wire = await Wire.open(hostile.service.origin)
    await wire.write(bytes())
    await expect.poll(() => wire.bytes.startsWith('HTTP/1.1 ') || accepted.at(-1)?.destroyed === true).toBe(true)
    await delay(300)
    wire.destroy()
  })

  function question(): string {
    const body = JSON.stringify({
      model: 'svc-router/frontier',
      stream: true,
      messages: [{ role: 'user', content: 'Hi' }],
    })
    return `${head('POST /v1/chat/completions', `content-type: application/json\r\ncontent-length: ${body.length}\r\n`)}${body}`
  }
})

test('a thousand idle connections use little memory, and release it', { timeout: 60_000 }, async () => {
  const { service } = hostile
  const connectAll = async (): Promise<WebSocket[]> => {
    const sockets: WebSocket[] = []
    for (let account = 0; account < idleSockets / 200; account++) {
      const { key } = await service.addAccount(`idle-${account}-${performance.now()}`, 'max')
      const headers = { authorization: `Bearer ${key}`, 'user-agent': 'svc-router-tests/1.0' }
      const opened = await Promise.all(
        Array.from({ length: 200 }, async () => {
          const socket = new WebSocket(`${service.baseUrl.replace('http', 'ws')}/responses`, { headers })
          await new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject))
          return socket
        }),
      )
      sockets.push(...opened)
    }
    return sockets
  }
  const closeAll = async (sockets: readonly WebSocket[]): Promise<void> => {
    for (const socket of sockets) socket.terminate()
    await expect.poll(() => accepted.every(({ destroyed }) => destroyed), { timeout: 10_000 }).toBe(true)
    accepted = []
  }
  await closeAll(await connectAll())
  const before = heapBytes()
  const sockets = await connectAll()
  const held = heapBytes() - before
  expect(held / idleSockets).toBeLessThan(idleSocketBytes)
  const client = await open()
  expect((await client.turn({ store: false })).last.type).toBe('response.completed')
  await client.close()
  await closeAll(sockets)
  sockets.length = 0
  await expect.poll(() => heapBytes() - before, { timeout: 10_000 }).toBeLessThan(held / 4)
})
