import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { ServerResponse } from 'node:http'
import { connect, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { Service } from '../service.ts'
import { writePost } from './raw-client.ts'
import { settingsFor, openEventStream, startScriptedUpstream, type ScriptedUpstream } from './scripted-upstream.ts'

/** Contract 9.12. */
const maxWaitingBytes = 256 * 1024
const totalBytes = 48 * 1024 * 1024
/** Far more than the kernel buffers on both sides. */
const eventText = 'x'.repeat(8_000)

let upstream: ScriptedUpstream
let service: Service
/** The service's ends of its clients' connections. */
let accepted: Socket[]

function onRequest(message: unknown): void {
  const { request, socket } = message as { request: { url: string; headers: Record<string, string> }; socket: Socket }
  if (request.headers['user-agent']?.startsWith('svc-router-tests') === true) accepted.push(socket)
}

beforeEach(async () => {
  accepted = []
  subscribe('http.server.request.start', onRequest)
  upstream = await startScriptedUpstream()
})
afterEach(async () => {
  unsubscribe('http.server.request.start', onRequest)
  await service.stop()
  await upstream.close()
})

const chunk = (content: string, finish: string | null = null): string =>
  `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta: { content }, finish_reason: finish }] })}\n\n`

/** Sends as fast as it is read; `sent` counts the bytes that the connection has accepted. */
function flood(first: string): { sent: () => number } {
  let response: ServerResponse | undefined
  upstream.answer = async (_request, given) => {
    response = given
    openEventStream(given)
    given.write(first)
    const text = chunk(eventText)
    for (let bytes = 0; bytes < totalBytes; bytes += text.length) {
      if (!given.write(text)) await new Promise((resolve) => given.once('drain', resolve))
    }
    given.end(`${chunk('', 'stop')}data: [DONE]\n\n`)
  }
  return { sent: () => (response?.socket?.bytesWritten ?? 0) - (response?.socket?.writableLength ?? 0) }
}

describe.each([
  ['the same format', '/chat/completions', { messages: [{ role: 'user', content: 'Hi' }] }],
  ['another format', '/responses', { input: 'Hi' }],
] as const)('a client of %s', (_name, path, body) => {
  test.each([
    ['from the middle on', chunk('begins')],
    ['from the first bytes on', chunk('begins') + chunk('y'.repeat(200_000))],
  ])(
    'if the client reads nothing %s, the backend is paused with at most 256 KiB queued, and reading again delivers everything',
    { timeout: 60_000 },
    async (_when, first) => {
      service = await Service.start({ formats: [], settings: settingsFor(upstream, 'openai-chat', { idle: '20s' }) })
      const { sent } = flood(first)
      const caller = connect(Number(new URL(service.baseUrl).port), '127.0.0.1')
      let received = 0
      let tail = ''
      caller.on('data', (bytes: Buffer) => {
        received += bytes.length
        tail = (tail + bytes.toString('latin1')).slice(-200)
      })
      caller.once('data', () => caller.pause())
      caller.write(writePost(path, service.key, { model: 'svc-router/frontier', stream: true, ...body }))
      await expect.poll(() => received, { timeout: 5_000 }).toBeGreaterThan(0)
      let mostWaiting = 0
      let before = -1
      for (let calm = 0; calm < 10;) {
        await delay(20)
        mostWaiting = Math.max(mostWaiting, accepted[0]!.writableLength)
        calm = sent() === before ? calm + 1 : 0
        before = sent()
      }
      expect(mostWaiting).toBeGreaterThan(0)
      expect(mostWaiting).toBeLessThanOrEqual(maxWaitingBytes)
      expect(sent(), 'most of it still waits at the backend').toBeLessThan(totalBytes / 2)
      const record = await service.store.listRequests({ limit: 1 })
      expect(record[0]?.state).toBe('delivered')
      caller.resume()
      await expect.poll(() => tail.includes('[DONE]'), { timeout: 40_000 }).toBe(true)
      expect(received).toBeGreaterThan(totalBytes * 0.9)
      expect(accepted[0]!.writableLength).toBe(0)
      caller.destroy()
    },
  )
})
