import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { startSimulatedProvider, type SimulatedProvider } from '../../src/simulation/providers/simulated-provider.ts'
import { SocketClient, type Turn } from '../socket-client.ts'
import { expectWholeChat } from './event-stream.ts'
import { type RawAnswer, RawConnection, writePost } from './raw-client.ts'
import { ServiceProcess } from './service-process.ts'

/** Each start of a process takes a second of CPU time, so the tests of one group share it, and its stop. */
const limitMs = 60_000

let folder: string
let provider: SimulatedProvider
let service: ServiceProcess

async function start(settings: object = {}, env: NodeJS.ProcessEnv = {}): Promise<void> {
  folder = mkdtempSync(join(tmpdir(), 'svc-router-drain-'))
  provider = await startSimulatedProvider({ name: 'alpha' })
  service = new ServiceProcess(
    folder,
    [provider],
    { backends: { alpha: { provider: 'alpha', model: 'simulated' } }, ...settings },
    env,
  )
  await service.start()
}

async function destroy(): Promise<void> {
  await service.destroy()
  await provider.close()
  rmSync(folder, { recursive: true, force: true })
}

const whole = { model: 'svc-router/frontier', messages: [{ role: 'user', content: 'Hello' }] }
const slowStream = { ...whole, stream: true }

function post(body: object): string {
  return writePost('/chat/completions', service.key, body)
}

function openSocket(): Promise<SocketClient> {
  return SocketClient.open({ origin: `http://127.0.0.1:${service.port}`, key: service.key })
}

async function isRefused(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1')
  try {
    await once(socket, 'connect')
    return false
  } catch {
    return true
  } finally {
    socket.destroy()
  }
}

/** Waits until this many answers have started and none of them has ended. */
async function begun(answers: number): Promise<void> {
  const running = (): number => service.records().filter(({ state }) => state === 'delivered').length
  await vi.waitUntil(() => running() === answers, { timeout: 15_000 })
}

describe('on SIGTERM', () => {
  let stream: RawAnswer
  let kept: RawAnswer
  let pipelined: string
  let idleClosed: unknown
  let current: Turn
  let queued: Turn
  let busyClosed: unknown
  let exit: number | string
  let exitMs: number

  beforeAll(async () => {
    await start()
    const keptOpen = new RawConnection(service.port)
    expect((await keptOpen.ask(post(whole))).status).toBe(200)
    const idle = await openSocket()
    expect((await idle.turn()).last.type).toBe('response.completed')
    const busy = await openSocket()
    provider.script([{ do: 'answer', words: 24, tokenDelayMs: 50, repeat: true }])
    busy.create({ stream_id: 'first' })
    busy.create({ stream_id: 'second' })
    await busy.next()
    const answers = [new RawConnection(service.port).ask(post(slowStream)), keptOpen.ask(post(slowStream))] as const
    const both = new RawConnection(service.port).read(post(slowStream) + post(slowStream))
    await begun(4)
    const startedMs = performance.now()
    const exited = service.stop('SIGTERM')
    await vi.waitUntil(() => isRefused(service.port), { timeout: 1_000 })
    ;[stream, kept] = await Promise.all(answers)
    pipelined = await both
    current = await busy.read()
    queued = await busy.read()
    idleClosed = await idle.closed
    busyClosed = await busy.closed
    exit = await exited
    exitMs = performance.now() - startedMs
  }, limitMs)
  afterAll(destroy)

  test('streams finish, no connection is accepted, and the process exits with 0 after settling every record', () => {
    expect(stream.complete).toBe(true)
    expect(expectWholeChat(stream.body)).toMatch(/simulated/)
    expect(exit).toBe(0)
    const records = service.records()
    // The two before it, and the five that were running or followed on a connection.
    expect(records.map(({ state, charged }) => [state, charged])).toEqual(Array.from({ length: 7 }, () => ['done', 1]))
    expect(service.usedUnits()).toBe(7)
  })

  test('clients that keep their connections open do not delay the exit', () => {
    expect(kept.complete).toBe(true)
    expect(exitMs).toBeLessThan(15_000)
  })

  test('a client that sends another request at once is answered once more, on a connection that then closes', () => {
    const heads = pipelined.match(/^HTTP\/1\.1 200 OK|^connection: .+$/gim)?.map((line) => line.toLowerCase().trim())
    expect(heads).toEqual(['http/1.1 200 ok', 'connection: keep-alive', 'http/1.1 200 ok', 'connection: close'])
  })

  test('idle WebSockets receive a going-away close', () => {
    expect(idleClosed).toEqual({ code: 1001, reason: 'restarting' })
  })

  test('the current answer of a WebSocket finishes, queued messages get an error that asks for a retry, and it closes', () => {
    expect(current.last.type).toBe('response.completed')
    expect(queued.last).toMatchObject({
      type: 'error',
      stream_id: 'second',
      status: 503,
      error: { code: 'restarting', retryable: true },
      headers: { 'retry-after': '1' },
    })
    expect(busyClosed).toEqual({ code: 1001, reason: 'restarting' })
  })
})

describe('at the drain limit', () => {
  let stream: RawAnswer
  let turn: Turn
  let exit: number | string
  let exitMs: number

  beforeAll(async () => {
    await start({ drain: '500ms' })
    provider.script([{ do: 'answer', words: 1_000, tokenDelayMs: 50, repeat: true }])
    const asked = new RawConnection(service.port).ask(post(slowStream))
    const socket = await openSocket()
    socket.create()
    await socket.next()
    await begun(2)
    const startedMs = performance.now()
    const exited = service.stop('SIGTERM')
    turn = await socket.read()
    stream = await asked
    exit = await exited
    exitMs = performance.now() - startedMs
  }, limitMs)
  afterAll(destroy)

  test('a longer stream ends with an error in its own format, and its record says so', () => {
    expect(exit).toBe(0)
    expect(exitMs).toBeLessThan(15_000)
    expect(stream.complete).toBe(true)
    expect(stream.body).toContain('"code":"restarting"')
    expect(stream.body.trimEnd().endsWith('data: [DONE]')).toBe(true)
    const records = service.records()
    expect(records).toHaveLength(2)
    for (const record of records) expect(record).toMatchObject({ state: 'done', charged: 1, errorCode: 'restarting' })
    expect(service.errors).toContain('"event":"drain_limit","limitMs":500,"running":2,"unread":0')
    expect(service.usedUnits()).toBe(2)
  })

  test('a longer answer of a WebSocket ends with an error in its own format', () => {
    expect(turn.events.at(-2)).toMatchObject({ type: 'error', error: { code: 'restarting' } })
    expect(turn.last.type).toBe('response.failed')
  })
})

describe('with 200 open streams', () => {
  const streams = 200
  const words = 'one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen'
  const paths = [
    ['/chat/completions', { messages: [{ role: 'user', content: 'Count.' }] }, 'data: [DONE]'],
    ['/responses', { input: 'Count.' }, '"type":"response.completed"'],
    ['/messages', { messages: [{ role: 'user', content: 'Count.' }], max_tokens: 100 }, '"type":"message_stop"'],
  ] as const
  afterAll(destroy)

  test(
    'SIGTERM cuts none of them, and each is charged once',
    async () => {
      const plan = { name: 'Max', requests_per_minute: 1_000, requests_per_month: 1_000, premium: true }
      await start({ plans: { max: plan } })
      provider.script([{ do: 'answer', text: words, tokenDelayMs: 700, repeat: true }])
      const answers = Array.from({ length: streams }, async (_, n) => {
        const [path, body, end] = paths[n % paths.length]!
        const named = n % 2 === 0 ? `idempotency-key: ${n}\r\n` : ''
        const sent = writePost(path, service.key, { model: whole.model, stream: true, ...body }, named)
        return { answer: await new RawConnection(service.port).ask(sent), end }
      })
      await begun(streams)
      const exited = service.stop('SIGTERM')
      for (const { answer, end } of await Promise.all(answers)) {
        expect(answer).toMatchObject({ status: 200, complete: true })
        expect(answer.body).toContain('sixteen')
        expect(answer.body).toContain(end)
      }
      expect(await exited).toBe(0)
      expect(service.records().map(({ state, charged }) => `${state} ${charged}`)).toEqual(
        Array.from({ length: streams }, () => 'done 1'),
      )
      expect(service.usedUnits()).toBe(streams)
    },
    limitMs,
  )
})

describe('during a drain', () => {
  afterAll(destroy)

  test(
    'a signal exits immediately if it comes more than two seconds after the first',
    async () => {
      await start()
      provider.script([{ do: 'answer', words: 1_000, tokenDelayMs: 50 }])
      const stream = new RawConnection(service.port).ask(post(slowStream))
      await begun(1)
      service.running.kill('SIGTERM')
      await expect.poll(() => isRefused(service.port), { timeout: 2_000 }).toBe(true)
      await delay(2_100)
      const startedMs = performance.now()
      expect(await service.stop('SIGTERM')).toBe(1)
      expect(performance.now() - startedMs).toBeLessThan(1_000)
      expect((await stream).complete).toBe(false)
      // It is charged at the next start: tests/processes/restart.test.ts.
      expect(service.records()[0]).toMatchObject({ state: 'delivered' })
    },
    limitMs,
  )
})

describe('in production', () => {
  afterAll(destroy)

  test(
    '/ready returns 503 while connections are still accepted, and then the listener closes',
    async () => {
      await start(
        { mode: 'production', app_url: 'https://app.example.com' },
        {
          SVC_ROUTER_PEPPER: 'made-up-pepper-of-the-tests',
          SVC_ROUTER_SEALING_KEY: Buffer.alloc(32, 7).toString('base64'),
        },
      )
      const ready = async (): Promise<unknown> => {
        const response = await fetch(`http://127.0.0.1:${service.port}/ready`)
        return { status: response.status, body: await response.json() }
      }
      expect(await ready()).toEqual({ status: 200, body: { ready: true, reasons: [] } })
      const exited = service.stop('SIGTERM')
      const draining = { status: 503, body: { ready: false, reasons: ['draining'] } }
      await expect.poll(ready, { timeout: 3_000 }).toEqual(draining)
      expect(await isRefused(service.port)).toBe(false)
      expect(await exited).toBe(0)
      expect(await isRefused(service.port)).toBe(true)
    },
    limitMs,
  )
})
