import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { startSimulatedProvider, type SimulatedProvider } from '../../src/simulation/providers/simulated-provider.ts'
import { expectWholeChat } from './event-stream.ts'
import { RawConnection, writePost } from './raw-client.ts'
import { ServiceProcess } from './service-process.ts'

let folder: string
let provider: SimulatedProvider
let service: ServiceProcess

afterEach(async () => {
  await service.destroy()
  await provider.close()
  rmSync(folder, { recursive: true, force: true })
})

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

const slowStream = { model: 'svc-router/frontier', stream: true, messages: [{ role: 'user', content: 'Hello' }] }

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

test('on SIGTERM streams finish, no connection is accepted, and the process exits with 0 after settling every record', async () => {
  await start()
  provider.script([{ do: 'answer', words: 30, tokenDelayMs: 50 }])
  const stream = new RawConnection(service.port).ask(writePost('/chat/completions', service.key, slowStream))
  await expect.poll(() => service.records().at(-1)?.state, { timeout: 5_000 }).toBe('delivered')
  const exited = service.stop('SIGTERM')
  await expect.poll(() => isRefused(service.port), { timeout: 1_000 }).toBe(true)
  const answer = await stream
  expect(answer.complete).toBe(true)
  expect(expectWholeChat(answer.body)).toMatch(/simulated/)
  expect(await exited).toBe(0)
  expect(service.records().map(({ state, charged }) => [state, charged])).toEqual([['done', 1]])
  expect(service.usedUnits()).toBe(1)
})

test('clients that keep their connections open do not delay the exit', async () => {
  await start()
  const connection = new RawConnection(service.port)
  const whole = { model: 'svc-router/frontier', messages: [{ role: 'user', content: 'Hello' }] }
  expect((await connection.ask(writePost('/chat/completions', service.key, whole))).status).toBe(200)
  provider.script([{ do: 'answer', words: 12, tokenDelayMs: 50 }])
  const stream = connection.ask(writePost('/chat/completions', service.key, slowStream))
  await expect.poll(() => service.records().at(-1)?.state, { timeout: 5_000 }).toBe('delivered')
  const startedMs = performance.now()
  expect(await service.stop('SIGTERM')).toBe(0)
  expect(performance.now() - startedMs).toBeLessThan(5_000)
  expect((await stream).complete).toBe(true)
})

test('a client that sends another request at once is answered once more, on a connection that then closes', async () => {
  await start()
  provider.script([
    { do: 'answer', words: 12, tokenDelayMs: 50 },
    { do: 'answer', words: 2, tokenDelayMs: 10 },
  ])
  const post = writePost('/chat/completions', service.key, slowStream)
  const read = new RawConnection(service.port).read(post + post)
  await expect.poll(() => service.records().at(-1)?.state, { timeout: 5_000 }).toBe('delivered')
  expect(await service.stop('SIGTERM')).toBe(0)
  const heads = (await read).match(/^HTTP\/1\.1 200 OK|^connection: .+$/gim)?.map((line) => line.toLowerCase().trim())
  expect(heads).toEqual(['http/1.1 200 ok', 'connection: keep-alive', 'http/1.1 200 ok', 'connection: close'])
})

test('a stream longer than the drain limit ends with an error in its own format, and its record says so', async () => {
  await start({ drain: '500ms' })
  provider.script([{ do: 'answer', words: 1_000, tokenDelayMs: 50 }])
  const stream = new RawConnection(service.port).ask(writePost('/chat/completions', service.key, slowStream))
  await expect.poll(() => service.records().at(-1)?.state, { timeout: 5_000 }).toBe('delivered')
  const startedMs = performance.now()
  expect(await service.stop('SIGTERM')).toBe(0)
  expect(performance.now() - startedMs).toBeLessThan(5_000)
  const answer = await stream
  expect(answer.complete).toBe(true)
  expect(answer.body).toContain('"code":"restarting"')
  expect(answer.body.trimEnd().endsWith('data: [DONE]')).toBe(true)
  const [record] = service.records()
  expect(record).toMatchObject({ state: 'done', charged: 1, errorCode: 'restarting' })
  expect(service.errors).toContain('"event":"drain_limit","limitMs":500,"running":1,"unread":0')
  expect(service.usedUnits()).toBe(1)
})

test('a second signal exits immediately', async () => {
  await start()
  provider.script([{ do: 'answer', words: 1_000, tokenDelayMs: 50 }])
  const stream = new RawConnection(service.port).ask(writePost('/chat/completions', service.key, slowStream))
  await expect.poll(() => service.records().at(-1)?.state, { timeout: 5_000 }).toBe('delivered')
  service.running.kill('SIGTERM')
  await expect.poll(() => isRefused(service.port), { timeout: 2_000 }).toBe(true)
  const startedMs = performance.now()
  expect(await service.stop('SIGTERM')).toBe(1)
  expect(performance.now() - startedMs).toBeLessThan(1_000)
  expect((await stream).complete).toBe(false)
  // Delivered answers are charged anyway, as after any crash.
  await service.start()
  expect(service.records()[0]).toMatchObject({ state: 'lost', charged: 1 })
})

test('in production /ready returns 503 while connections are still accepted, and then the listener closes', async () => {
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
  await expect.poll(ready, { timeout: 3_000 }).toEqual({ status: 503, body: { ready: false, reasons: ['draining'] } })
  expect(await isRefused(service.port)).toBe(false)
  expect(await exited).toBe(0)
  expect(await isRefused(service.port)).toBe(true)
})
