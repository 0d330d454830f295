import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { afterEach, expect, test } from 'vitest'
import { startSimulatedProvider, type SimulatedProvider } from '../../src/providers/simulated.ts'
import { expectBrokenChat, expectWholeChat } from './event-stream.ts'
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
  service = new ServiceProcess(folder, [provider], { backends: { alpha: { provider: 'alpha', model: 'simulated' } }, ...settings }, env)
  await service.start()
}

const slowStream = { model: 'svc-router/frontier', stream: true, messages: [{ role: 'user', content: 'Hello' }] }

/** A stream of that many words, each 50 ms behind the other, and its first byte awaited. */
async function openStream(words: number): Promise<ReturnType<RawConnection['ask']>> {
  provider.script([{ do: 'answer', words, tokenDelayMs: 50 }])
  const answer = new RawConnection(service.port).ask(writePost('/chat/completions', service.key, slowStream))
  await expect.poll(() => service.records().at(-1)?.state, { timeout: 5_000 }).toBe('delivered')
  // Not awaited here: the stream goes on.
  return answer
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

async function readiness(port: number): Promise<{ status: number; body: unknown }> {
  const response = await fetch(`http://127.0.0.1:${port}/ready`)
  return { status: response.status, body: await response.json() }
}

test('on SIGTERM running streams end well, no connection is taken any more, and it exits with 0 and every record settled', async () => {
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

test('callers that keep their connections open do not hold up the end', async () => {
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

test('a stream that is longer than the drain limit is cut, and its record says so', async () => {
  await start({ drain: '500ms' })
  provider.script([{ do: 'answer', words: 1_000, tokenDelayMs: 50 }])
  const stream = new RawConnection(service.port).ask(writePost('/chat/completions', service.key, slowStream))
  await expect.poll(() => service.records().at(-1)?.state, { timeout: 5_000 }).toBe('delivered')
  const startedMs = performance.now()
  expect(await service.stop('SIGTERM')).toBe(0)
  expect(performance.now() - startedMs).toBeLessThan(5_000)
  const answer = await stream
  expect(answer.complete).toBe(false)
  expect(answer.body).not.toContain('[DONE]')
  const [record] = service.records()
  expect(record).toMatchObject({ state: 'done', charged: 1, errorCode: 'client_closed' })
  expect(service.usedUnits()).toBe(1)
})

test('a second signal ends it at once', async () => {
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
  // What was delivered is charged all the same, as after any sudden end.
  await service.start()
  expect(service.records()[0]).toMatchObject({ state: 'lost', charged: 1 })
})
