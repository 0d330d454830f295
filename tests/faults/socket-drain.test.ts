import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { startSimulatedProvider, type SimulatedProvider } from '../../src/simulation/providers/simulated-provider.ts'
import { SocketClient } from '../socket-client.ts'
import { ServiceProcess } from './service-process.ts'

let folder: string
let provider: SimulatedProvider
let service: ServiceProcess

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'svc-router-drain-'))
})
afterEach(async () => {
  await service.destroy()
  await provider.close()
  rmSync(folder, { recursive: true, force: true })
})

async function start(settings: object = {}): Promise<void> {
  provider = await startSimulatedProvider({ name: 'alpha' })
  const backends = { alpha: { provider: 'alpha', model: 'simulated' } }
  service = new ServiceProcess(folder, [provider], { backends, ...settings })
  await service.start()
}

function open(): Promise<SocketClient> {
  return SocketClient.open({ origin: `http://127.0.0.1:${service.port}`, key: service.key })
}

test('on SIGTERM idle connections receive a going-away close and do not delay the exit', async () => {
  await start()
  const client = await open()
  expect((await client.turn()).last.type).toBe('response.completed')
  const startedMs = performance.now()
  const exited = service.stop('SIGTERM')
  expect(await client.closed).toEqual({ code: 1001, reason: 'restarting' })
  expect(await exited).toBe(0)
  expect(performance.now() - startedMs).toBeLessThan(3_000)
})

test('on SIGTERM the current answer finishes, queued messages get an error that asks for a retry, and the connection closes', async () => {
  await start()
  provider.script([{ do: 'answer', words: 30, tokenDelayMs: 50 }])
  const client = await open()
  client.create()
  client.create()
  await client.next()
  const exited = service.stop('SIGTERM')
  expect((await client.read()).last.type).toBe('response.completed')
  expect((await client.read()).last).toMatchObject({
    type: 'error',
    status: 503,
    error: { code: 'restarting', retryable: true },
    headers: { 'retry-after': '1' },
  })
  expect(await client.closed).toEqual({ code: 1001, reason: 'restarting' })
  expect(await exited).toBe(0)
  expect(service.records().map(({ state, charged }) => [state, charged])).toEqual([['done', 1]])
})

test('an answer longer than the drain limit ends with an error in its own format, and its record says so', async () => {
  await start({ drain: '500ms' })
  provider.script([{ do: 'answer', words: 1_000, tokenDelayMs: 50 }])
  const client = await open()
  client.create()
  await client.next()
  const startedMs = performance.now()
  const exited = service.stop('SIGTERM')
  const { events, last } = await client.read()
  expect(events.at(-2)).toMatchObject({ type: 'error', error: { code: 'restarting' } })
  expect(last.type).toBe('response.failed')
  expect(await exited).toBe(0)
  expect(performance.now() - startedMs).toBeLessThan(5_000)
  expect(service.records()[0]).toMatchObject({ state: 'done', charged: 1, errorCode: 'restarting' })
})
