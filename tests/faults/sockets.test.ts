import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { HeldTime } from '../held-time.ts'
import { Service } from '../service.ts'
import { SocketClient } from '../socket-client.ts'
import { RawSocket } from './raw-frames.ts'
import { settingsFor, openEventStream, startScriptedUpstream, type ScriptedUpstream } from './scripted-upstream.ts'

/** Contract 9.10 and 9.11. */
const maxWaitingBytes = 256 * 1024
const totalBytes = 48 * 1024 * 1024
const eventText = 'x'.repeat(8_000)

let service: Service
afterEach(() => service.stop())

describe('a client that disconnects', () => {
  const ask = JSON.stringify({ type: 'response.create', model: 'svc-router/frontier', input: 'Hi' })
  const ways: readonly (readonly [string, (client: RawSocket) => void])[] = [
    ['closes the WebSocket and not its connection', (client) => client.write({ opcode: 8, payload: '\x03\xe8' })],
    ['ends its connection', (client) => client.socket.end()],
    ['resets its connection', (client) => client.socket.resetAndDestroy()],
    ['breaks the protocol', (client) => client.write({ opcode: 1, payload: 'x', masked: false })],
  ]

  test.each(ways)(
    'after content, a client that %s aborts the backend within 100 ms and is charged',
    async (_, leave) => {
      service = await Service.start({ formats: ['openai-responses'] })
      const provider = service.providers[0]!
      provider.script([{ do: 'answer', words: 500, tokenDelayMs: 20 }])
      const client = await RawSocket.open(service.origin, service.key)
      client.write({ opcode: 1, payload: ask })
      await expect.poll(() => client.received.toString('latin1')).toContain('response.output_text.delta')
      await expectAbort(() => leave(client))
      await expect
        .poll(async () => (await service.store.listRequests({ limit: 1 }))[0])
        .toMatchObject({ state: 'done', charged: 1, errorCode: 'client_closed' })
      client.socket.destroy()
    },
  )

  test.each(ways)('before content, a client that %s aborts the backend within 100 ms', async (_, leave) => {
    service = await Service.start({ formats: ['openai-responses'] })
    service.providers[0]!.script([{ do: 'silence' }])
    const client = await RawSocket.open(service.origin, service.key)
    client.write({ opcode: 1, payload: ask })
    await expect.poll(() => service.providers[0]!.counts().open).toBe(1)
    await delay(50)
    await expectAbort(() => leave(client))
    client.socket.destroy()
  })

  test('the messages that a disconnected client has queued are never sent to a backend', async () => {
    service = await Service.start({ formats: ['openai-responses'] })
    service.providers[0]!.script([{ do: 'answer', words: 500, tokenDelayMs: 20 }])
    const client = await SocketClient.open(service)
    client.create()
    client.create()
    await client.next()
    client.socket.terminate()
    await expect.poll(() => service.providers[0]!.counts().open).toBe(0)
    await delay(100)
    expect(service.providers[0]!.captured()).toHaveLength(1)
  })

  async function expectAbort(leave: () => void): Promise<void> {
    const provider = service.providers[0]!
    const before = provider.counts().aborted
    using held = new HeldTime()
    const leftMs = performance.now()
    leave()
    await expect.poll(() => provider.counts().aborted, { interval: 2, timeout: 5_000 }).toBe(before + 1)
    const abortedMs = provider.counts().abortedAtMs.at(-1)! - performance.timeOrigin
    expect(abortedMs - leftMs - held.within(leftMs, abortedMs)).toBeLessThan(100)
  }
})

describe('a client that reads slowly', () => {
  let upstream: ScriptedUpstream
  let accepted: Socket[]
  const onSocket = (message: unknown): void => void accepted.push((message as { socket: Socket }).socket)

  beforeEach(async () => {
    accepted = []
    subscribe('net.server.socket', onSocket)
    upstream = await startScriptedUpstream()
  })
  afterEach(async () => {
    unsubscribe('net.server.socket', onSocket)
    await upstream.close()
  })

  const chunk = (content: string, finish: string | null = null): string =>
    `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta: { content }, finish_reason: finish }] })}\n\n`
  const event = (type: string, data: object): string => `event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`
  const created = event('response.created', { sequence_number: 0, response: { id: 'resp_1', status: 'in_progress' } })
  const delta = (text: string): string =>
    event('response.output_text.delta', { sequence_number: 1, output_index: 0, delta: text })
  const end = event('response.completed', {
    sequence_number: 2,
    response: { id: 'resp_1', status: 'completed', output: [] },
  })

  test.each([
    ['openai-chat', chunk('begins'), chunk(eventText), `${chunk('', 'stop')}data: [DONE]\n\n`],
    ['openai-responses', created + delta('begins'), delta(eventText), end],
  ] as const)(
    'a %s backend is paused with at most 256 KiB queued, and the client receives everything when it reads again',
    { timeout: 60_000 },
    async (format, first, text, last) => {
      service = await Service.start({ formats: [], settings: settingsFor(upstream, format, { idle: '20s' }) })
      let response: ServerResponse | undefined
      upstream.answer = async (_request, given) => {
        response = given
        openEventStream(given)
        given.write(first)
        for (let bytes = 0; bytes < totalBytes; bytes += text.length) {
          if (!given.write(text)) await new Promise((resolve) => given.once('drain', resolve))
        }
        given.end(last)
      }
      const sent = (): number => (response?.socket?.bytesWritten ?? 0) - (response?.socket?.writableLength ?? 0)
      const client = await SocketClient.open(service)
      const end = accepted.find(({ remotePort }) => remotePort === portOf(client))!
      client.create({ store: false })
      await client.next()
      client.socket.pause()
      let mostWaiting = 0
      let before = -1
      for (let calm = 0; calm < 10;) {
        await delay(20)
        mostWaiting = Math.max(mostWaiting, end.writableLength)
        calm = sent() === before ? calm + 1 : 0
        before = sent()
      }
      expect(mostWaiting).toBeGreaterThan(0)
      expect(mostWaiting).toBeLessThanOrEqual(maxWaitingBytes)
      expect(sent(), 'most of it still waits at the backend').toBeLessThan(totalBytes / 2)
      client.socket.resume()
      const { last: ending, text: all } = await client.read(40_000)
      expect(ending.type).toBe('response.completed')
      expect(all.length).toBeGreaterThan(totalBytes * 0.9)
      expect(end.listenerCount('drain')).toBeLessThan(4)
      client.socket.terminate()
    },
  )
})

/** The port of the client's end. */
function portOf({ socket }: SocketClient): number {
  return (socket as unknown as { readonly _socket: Socket })._socket.localPort!
}
