import { DatabaseSync } from 'node:sqlite'
import { expect, test } from 'vitest'
import { ServiceError } from '../../../src/domain/errors.ts'
import { linksFor } from '../../../src/domain/links.ts'
import type { AnswerContext } from '../../../src/formats/format.ts'
import { formatById, relayById } from '../../../src/formats/formats.ts'
import type { Gateway } from '../../../src/gateway/gateway.ts'
import type { KeyedRequest } from '../../../src/gateway/generations/generation-entry.ts'
import type { GenerationStore } from '../../../src/gateway/generations/generation-store.ts'
import { Generations } from '../../../src/gateway/generations/generations.ts'
import type { AnswerSink, ModelRequest, Principal } from '../../../src/gateway/ports.ts'
import { pause } from '../../../src/runtime/pause.ts'
import { createSealer } from '../../../src/runtime/sealer.ts'
import { Secret } from '../../../src/runtime/secret.ts'
import { createGenerationStore } from '../../../src/storage/generation-store.ts'
import { openMigrated } from '../../../src/storage/sqlite/open-sqlite.ts'
import { signals } from '../../simulation/simulated-gateway.ts'
import { ManualClock } from '../manual-clock.ts'
import { collectingSink } from './collecting-sink.ts'

/*
 * What becomes of requests with one key. If the database's clock is set back by an hour, the leases that are stored then
 * end an hour too late. A process is one `Generations` with its own clock, which stops when the process dies.
 */

const hourMs = 3_600_000
const leaseMs = 10_000
const detachedMs = 60_000
/** After which a request fails late. */
const lateMs = 1_000
/** After which a failed deletion is repeated. */
const removeAgainMs = 2_000
const answer = '{"text":"hello"}'
const event = 'data: {"choices":[]}\n\n'
const conversation = formatById('openai-responses').readRequest({ model: 'svc-router/frontier', input: 'Hello.' })
const none = (): void => {}
const random = (bytes: number): Uint8Array => new Uint8Array(bytes).fill(7)

/** What a process does with a request. */
type Run =
  | 'answers'
  | 'hangs'
  | 'fails'
  | 'fails late'
  | 'begins and fails'
  | 'begins and hangs'
  | 'rejects'
  | 'streams'

async function openWorld() {
  const clock = new ManualClock()
  const database = new DatabaseSync(':memory:')
  database.function('unixepoch', { varargs: true }, () => clock.nowMs() / 1_000)
  const store = createGenerationStore(await openMigrated(() => database))
  return { clock, store }
}

function startProcess(
  clock: ManualClock,
  store: GenerationStore,
  runs: readonly Run[],
  { stream = false, isBackground = false } = {},
) {
  /** The IDs of the requests that ran. */
  const ran: string[] = []
  let minted = 0
  const generations = new Generations({
    gateway: {
      check: () => ({ stream }) as ReturnType<Gateway['check']>,
      signals: async () => signals,
      answer: async (_, { id, onAdmitted }, sink) => {
        const how = runs[ran.push(id) - 1]!
        onAdmitted?.({ requestId: id, createdAt: 0, conversation } as AnswerContext)
        if (how.startsWith('begins')) begin(sink)
        if (how === 'fails late' || how === 'begins and fails') await pause(clock, lateMs)
        return run(how, sink)
      },
    },
    store,
    sealer: createSealer({ current: { id: 'k1', key: new Secret(random(32)) }, random }),
    clock,
    log: none,
    links: linksFor('https://app.example'),
    relays: relayById,
    retentionMs: 24 * hourMs,
    detachedMs,
    mintRequestId: () => `req_minted_${++minted}`,
  })
  const keyedOf = (id: string, recheck = none): KeyedRequest => ({
    principal: { accountId: 'acc_1', recheck } as unknown as Principal,
    request: { id, format: 'openai-chat' } as ModelRequest,
    keyDigest: 'key',
    bodyDigest: 'body',
    sinkFor: () => collectingSink(none).sink,
    onClosed: none,
    hold: () => ({ grow: none, [Symbol.dispose]: none }),
    after: undefined,
    isBackground,
  })
  /** Sends the same request under the same key. */
  const ask = (id: string, recheck = (): void => {}): { end: string | undefined; leave: () => void } => {
    const asked: { end: string | undefined; leave: () => void } = { end: undefined, leave: none }
    const keyed = {
      ...keyedOf(id, recheck),
      sinkFor: () => collectingSink((text) => (asked.end = text)).sink,
      onClosed: (run: () => void) => (asked.leave = run),
    }
    generations.answer(keyed).catch((error: ServiceError) => (asked.end = error.code))
    return asked
  }
  /** Starts a background response, or gets what a retry does. */
  const start = (id: string) => generations.start(keyedOf(id))
  return { ask, start, ran }
}

async function run(how: Run, sink: AnswerSink): Promise<void> {
  if (how.endsWith('hangs')) return new Promise(none)
  if (how.includes('fails')) throw new ServiceError('server_is_overloaded')
  if (how === 'rejects') throw new ServiceError('key_inactive')
  sink.hold()
  sink.open({ stream: how === 'streams', upstream: 'alpha', simulated: false, retryCount: 0, signals })
  if (how === 'streams') return await streamUntilStopped(sink)
  sink.end(answer)
  await sink.stored!()
  sink.release()
}

/** Sends an event without content. */
function begin(sink: AnswerSink): void {
  sink.open({ stream: true, upstream: undefined, simulated: false, retryCount: 0, signals })
  sink.write(event)
}

/** Delivers the first event, and then a second one when it is stopped. */
async function streamUntilStopped(sink: AnswerSink): Promise<void> {
  sink.write(event)
  await sink.stored!()
  sink.release()
  await new Promise<void>((resolve) => sink.onDisconnect(() => resolve()))
  sink.write(event)
}

test.each([0, -hourMs])(
  'a retry takes over from a dead process once its lease has ended, if the clock is set by %i ms',
  async (stepMs) => {
    const { clock, store } = await openWorld()
    const dead = startProcess(new ManualClock(), store, ['hangs'])
    const other = startProcess(clock, store, ['answers'])
    dead.ask('req_1')
    await clock.advance(1_000)
    expect(dead.ran).toEqual(['req_1'])
    clock.step(stepMs)
    const retry = other.ask('req_2')
    await clock.advance(leaseMs - 1_500)
    expect(other.ran).toEqual([])
    await clock.advance(2_000)
    expect(other.ran).toHaveLength(1)
    expect(retry.end).toBe(answer)
  },
)

test('a request that followed another one does not run if its own key was revoked meanwhile', async () => {
  const { clock, store } = await openWorld()
  const process = startProcess(clock, store, ['rejects', 'answers', 'answers'])
  process.ask('req_1')
  const revoked = process.ask('req_2', () => {
    throw new ServiceError('key_revoked')
  })
  await clock.advance(1_000)
  expect([process.ran, revoked.end]).toEqual([['req_1'], 'key_revoked'])
  const valid = process.ask('req_3')
  await clock.advance(1_000)
  expect([process.ran, valid.end]).toEqual([['req_1', 'req_3'], answer])
})

test('a process that lives keeps its generation, although the clock is set back', async () => {
  const { clock, store } = await openWorld()
  const living = startProcess(clock, store, ['hangs'])
  const other = startProcess(clock, store, [])
  living.ask('req_1')
  await clock.advance(1_000)
  clock.step(-hourMs)
  const retry = other.ask('req_2')
  await clock.advance(3 * leaseMs)
  expect(other.ran).toEqual([])
  expect(retry.end).toBeUndefined()
})

test('the deletion of a generation without an answer is repeated, so that a retry need not wait for its lease', async () => {
  const { clock, store } = await openWorld()
  let failures = 1
  const remove: GenerationStore['remove'] = async (...of) => {
    if (failures-- > 0) throw new Error('the disk is full')
    await store.remove(...of)
  }
  const process = startProcess(clock, { ...store, remove }, ['fails', 'answers'])
  const first = process.ask('req_1')
  await clock.advance(10)
  expect(first.end).toBe('server_is_overloaded')
  clock.step(-hourMs)
  const retry = process.ask('req_2')
  await clock.advance(removeAgainMs - 100)
  expect(process.ran).toEqual(['req_1'])
  await clock.advance(200)
  expect(process.ran).toHaveLength(2)
  expect(retry.end).toBe(answer)
})

test('a stream that has content is not deleted if its end cannot be stored, so that its retry does not run again', async () => {
  const { clock, store } = await openWorld()
  let appends = 0
  const append: GenerationStore['append'] = async (chunk) => {
    if (++appends === 2) throw new Error('the disk is full')
    return await store.append(chunk)
  }
  const process = startProcess(clock, { ...store, append }, ['streams', 'streams'], { stream: true })
  const first = process.ask('req_1')
  await clock.advance(100)
  first.leave()
  await clock.advance(detachedMs + 1_000)
  expect(appends).toBe(2)
  const retry = process.ask('req_2')
  await clock.advance(leaseMs + 1_000)
  expect(process.ran).toEqual(['req_1'])
  expect(retry.end).toContain('answer_interrupted')
})

test('a background stream that fails before content, after its client has disconnected, runs again', async () => {
  const { clock, store } = await openWorld()
  const process = startProcess(clock, store, ['fails late', 'streams'], { stream: true, isBackground: true })
  process.ask('req_1').leave()
  await clock.advance(lateMs + 100)
  expect(await store.findByRequest('acc_1', 'req_1')).toBeUndefined()
  process.ask('req_2')
  await clock.advance(100)
  expect(process.ran).toEqual(['req_1', 'req_2'])
})

test('the retry of a background stream whose process died before content runs again', async () => {
  const { clock, store } = await openWorld()
  const options = { stream: true, isBackground: true }
  const dead = startProcess(new ManualClock(), store, ['hangs'], options)
  const other = startProcess(clock, store, ['fails'], options)
  dead.ask('req_1')
  await clock.advance(1_000)
  const retry = other.ask('req_2')
  await clock.advance(leaseMs)
  expect(other.ran).toHaveLength(1)
  expect(retry.end).toBe('server_is_overloaded')
})

test('the retry of a background stream that fails after its first events gets its failure, as the response says', async () => {
  const { clock, store } = await openWorld()
  const process = startProcess(clock, store, ['begins and fails'], { stream: true, isBackground: true })
  process.ask('req_1')
  await clock.advance(lateMs + 100)
  expect(await store.findByRequest('acc_1', 'req_1')).toMatchObject({ state: 'interrupted', chunks: 2 })
  const retry = process.ask('req_2')
  await clock.advance(1_000)
  expect(process.ran).toEqual(['req_1'])
  expect(retry.end).toContain('server_is_overloaded')
  // A retry cannot succeed.
  expect(retry.end).toContain('"retryable":false')
})

test('the retry of a background stream whose process died after its first events gets those and an error', async () => {
  const { clock, store } = await openWorld()
  const options = { stream: true, isBackground: true }
  const deadClock = new ManualClock()
  const dead = startProcess(deadClock, store, ['begins and hangs'], options)
  const other = startProcess(clock, store, ['streams'], options)
  dead.ask('req_1')
  await deadClock.advance(100)
  await clock.advance(leaseMs + 1_000)
  const retry = other.ask('req_2')
  await clock.advance(1_000)
  expect(other.ran).toEqual([])
  expect(retry.end).toContain('answer_interrupted')
  expect(await store.findByRequest('acc_1', 'req_1')).toMatchObject({ state: 'interrupted' })
})

test('a response whose process died before its client knew of it runs again, and is not shown as failed before', async () => {
  const { clock, store } = await openWorld()
  const setResponse: GenerationStore['setResponse'] = () => new Promise(none)
  const dead = startProcess(new ManualClock(), { ...store, setResponse }, ['hangs'], { isBackground: true })
  const other = startProcess(clock, store, ['hangs'], { isBackground: true })
  dead.start('req_1').catch(none)
  await clock.advance(1_000)
  const waiting = expect(other.start('req_2')).rejects.toMatchObject({ code: 'restarting' })
  await clock.advance(leaseMs)
  await waiting
  const retry = other.start('req_3')
  await clock.advance(1_000)
  expect(await retry).toMatchObject({ isReplayed: false })
  expect(other.ran).toHaveLength(1)
})
