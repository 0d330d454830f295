import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { duplexPair } from 'node:stream'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Kysely } from 'kysely'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Plan } from '../../../src/domain/plans.ts'
import type { RequestOpening } from '../../../src/domain/requests.ts'
import type { Admission } from '../../../src/gateway/ports.ts'
import { systemClock } from '../../../src/runtime/clock.ts'
import { idMinter } from '../../../src/runtime/ids.ts'
import { systemRandom } from '../../../src/runtime/random.ts'
import { StoreUnavailable } from '../../../src/runtime/store-unavailable.ts'
import { LedgerUnavailable } from '../../../src/storage/ledger/ledger-unavailable.ts'
import { FramedSocket } from '../../../src/storage/owner/framed-socket.ts'
import { remoteStore } from '../../../src/storage/owner/remote-stores.ts'
import { TooManySaves } from '../../../src/storage/response-store.ts'
import type { Tables } from '../../../src/storage/schema/schema.ts'
import { openEmptySqlite } from '../../empty-database.ts'
import { ManualClock, settled } from '../../gateway/manual-clock.ts'
import { maxMessageBytes, openOwnedLedger, type OwnedLedger } from './owned-ledger.ts'

const plan: Plan = { id: 'max', name: 'Max', requestsPerMinute: 100, requestsPerMonth: 100, premium: true }
const answered = { charged: 1, attempts: [], totalMs: 1 }
const clock = systemClock()
const mintId = idMinter('req_', () => clock.nowMs(), systemRandom())
let folder: string
let db: Kysely<Tables>
let ledger: OwnedLedger

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'svc-router-test-'))
  db = await openEmptySqlite(folder)
})
afterEach(async () => {
  await ledger.close()
  await db.destroy()
  rmSync(folder, { recursive: true })
})

function openingOf(stream = false): RequestOpening {
  const facts = { accountId: 'acc_1', keyId: 'key_1', profile: 'svc-router/frontier', format: 'openai-chat' }
  return { id: mintId(), ...facts, stream, units: 1 }
}

/** Admits openings at once. */
const admitAll = (openings: readonly RequestOpening[], under = plan) =>
  Promise.all(openings.map(async (opening) => ledger.admit(opening, under)))

const rows = () => db.selectFrom('requests').select(['id', 'state', 'charged']).orderBy('id').execute()
const quotaUsed = async () => (await ledger.owner.signals('acc_1', plan)).quotaUsed

describe('a worker that dies', () => {
  test('is decided by its marks at once: what it delivered is charged, and nothing else', async () => {
    ledger = await openOwnedLedger(folder)
    const charged: string[] = []
    const admit = async (stream: boolean, isCharged: boolean) => {
      const opening = openingOf(stream)
      if (isCharged) charged.push(opening.id)
      return ledger.admit(opening, plan)
    }
    const open = await admit(false, false)
    await open.durable()
    const marked = await admit(false, true)
    await marked.durable()
    marked.deliver()
    const streaming = await admit(true, true)
    await streaming.durable()
    streaming.deliver()
    const dueAndSent = await admit(false, true)
    dueAndSent.settle(answered, 'due')
    await dueAndSent.durable()
    dueAndSent.deliver()
    const due = await admit(false, false)
    due.settle(answered, 'due')
    await due.durable()
    const dueAtOnce = await admit(false, false)
    dueAtOnce.settle(answered, 'due')
    const ended = await admit(false, true)
    await ended.durable()
    ended.deliver()
    ended.settle(answered, 'done')
    await settled()
    await nextTurn()
    expect(await quotaUsed()).toBe(7)
    const uncharged = ledger.workerDies()
    expect(await quotaUsed()).toBe(4)
    await ledger.owner.flush()
    expect(ledger.owner.inFlight).toBe(0)
    const written = await rows()
    expect(written).toHaveLength(7)
    expect(written.filter((row) => row.charged === 1).map(({ id }) => id)).toEqual(charged.toSorted())
    const notCharged = written.filter((row) => row.charged === 0).map(({ id }) => id)
    expect(uncharged.toSorted()).toEqual(notCharged.toSorted())
    expect(written.filter(({ state }) => state !== 'done' && state !== 'lost')).toEqual([])
    // What was written agrees with the counters in memory.
    await ledger.close()
    ledger = await openOwnedLedger(folder)
    expect(await quotaUsed()).toBe(4)
  })

  test('before its admission was decided, takes nothing', async () => {
    ledger = await openOwnedLedger(folder)
    const admission = ledger.admit(openingOf(), plan)
    // The owner has read the question, and is reading the account's counters.
    await nextTurn()
    await nextTurn()
    ledger.workerDies()
    await expect(admission).rejects.toThrow()
    await expect.poll(quotaUsed).toBe(0)
  })
})

describe('an owner that is stuck', () => {
  let time: ManualClock
  beforeEach(async () => {
    time = new ManualClock()
    ledger = await openOwnedLedger(folder, clock, { worker: time })
    expect(ledger.healthy()).toBe(true)
    ledger.ownerSide.pause()
  })

  test('is given up after 5 s, then refused at once, and what it admits late is not charged', async () => {
    const opening = openingOf()
    const admission = Promise.resolve(ledger.admit(opening, plan))
    const refused = expect(admission).rejects.toThrow(StoreUnavailable)
    await time.advance(5_500)
    await refused
    expect(ledger.healthy()).toBe(false)
    await expect(ledger.admit(openingOf(), plan)).rejects.toThrow(LedgerUnavailable)
    ledger.ownerSide.resume()
    await expect
      .poll(async () => {
        await time.advance(250)
        return ledger.healthy()
      })
      .toBe(true)
    await expect.poll(rows).toMatchObject([{ id: opening.id, charged: 0, state: 'done' }])
    expect(await quotaUsed()).toBe(0)
    await (await ledger.admit(openingOf(), plan)).durable()
    expect(await quotaUsed()).toBe(1)
  })

  test('does not charge answers that were ready only then', async () => {
    ledger.ownerSide.resume()
    const admissions = await admitAll([openingOf(), openingOf()])
    ledger.ownerSide.pause()
    await time.advance(5_500)
    // In one turn of the event loop.
    const refused = admissions.map((admission) => {
      admission.settle(answered, 'due')
      return expect(admission.durable()).rejects.toThrow(StoreUnavailable)
    })
    await Promise.all(refused)
    for (const admission of admissions) expect(() => admission.deliver()).toThrow(LedgerUnavailable)
    ledger.ownerSide.resume()
    await expect.poll(quotaUsed).toBe(0)
    await expect.poll(() => ledger.owner.inFlight).toBe(0)
  })

  test('does not charge any of the answers that waited together', async () => {
    ledger.ownerSide.resume()
    const [first, second, stream] = (await admitAll([openingOf(), openingOf(), openingOf(true)])) as [
      Admission,
      Admission,
      Admission,
    ]
    await stream.durable()
    ledger.ownerSide.pause()
    first.settle(answered, 'due')
    second.settle(answered, 'due')
    expect(first.durable()).toBe(second.durable())
    const refused = expect(first.durable()).rejects.toThrow(StoreUnavailable)
    await time.advance(23_000)
    await refused
    for (const admission of [first, second]) expect(() => admission.deliver()).toThrow(LedgerUnavailable)
    ledger.ownerSide.resume()
    stream.deliver()
    await expect.poll(quotaUsed).toBe(1)
  })

  test('does not charge an answer that its worker could not deliver', async () => {
    ledger.ownerSide.resume()
    const admission = await ledger.admit(openingOf(), plan)
    ledger.ownerSide.pause()
    admission.settle(answered, 'due')
    const written = admission.durable()!
    const refused = expect(written).rejects.toThrow(StoreUnavailable)
    await time.advance(23_000)
    await refused
    expect(() => admission.deliver()).toThrow(LedgerUnavailable)
    ledger.ownerSide.resume()
    await expect.poll(rows).toMatchObject([{ charged: 0, state: 'lost' }])
    expect(await quotaUsed()).toBe(0)
    await expect.poll(() => ledger.owner.inFlight).toBe(0)
  })
})

describe('the connection', () => {
  const open = async () => {
    ledger = await openOwnedLedger(folder)
  }
  const frame = (content: string | Buffer): Buffer => {
    const bytes = Buffer.from(content)
    const length = Buffer.alloc(4)
    length.writeUInt32BE(bytes.length)
    return Buffer.concat([length, bytes])
  }

  const settling = (cells: string): Buffer => frame(`[["settle",1,null,null,[${cells}]]]`)

  test.each([
    ['something else than JSON', frame('{'), 'invalid'],
    ['something else than a batch', frame('{}'), 'invalid'],
    ['an unknown question', frame('[{"do":"anything","call":1}]'), 'invalid'],
    ['an unknown message', frame('[["anything",1]]'), 'invalid'],
    ['a charge below zero', settling('-1,null,null,null,null,null,null,null,null,1,null,null'), 'invalid'],
    ['a value that no column takes', settling('1,{},null,null,null,null,null,null,null,1,null,null'), 'invalid'],
    ['an outcome with too few columns', settling('1'), 'invalid'],
    ['terms with too high a number', frame('[["terms",8192,{}]]'), 'invalid'],
    ['terms without a plan', frame('[["terms",0,{"accountId":"a","keyId":"k","units":1}]]'), 'invalid'],
    ['an admission under unknown terms', frame('[["admit",1,"req_1",0]]'), 'invalid'],
    ['a request that was not admitted', frame('[["delivered",1]]'), 'invalid'],
    [
      'the outcome of a request that was not admitted',
      settling('1,null,null,null,null,null,null,null,null,1,null,null'),
      'invalid',
    ],
    ['a value that V8 does not read', frame(Buffer.from([0xff, 0xff, 0xff])), 'invalid'],
    ['a frame that is too large', Buffer.from([0x7f, 0xff, 0xff, 0xff]), 'too_large'],
  ])('a worker that sends %s is given up', async (_, bytes, trouble) => {
    await open()
    ledger.workerSide.write(bytes)
    await expect.poll(() => ledger.troubles).toContain(trouble)
  })

  test('a worker that reads nothing is given up, and the owner goes on', async () => {
    const big = 'x'.repeat(maxMessageBytes / 2)
    ledger = await openOwnedLedger(folder, clock, {}, { store: { read: () => Promise.resolve(big) } })
    ledger.workerSide.pause()
    const store = remoteStore<{ read(): Promise<string> }>(ledger.connection, 'store')
    const answers = Promise.allSettled(Array.from({ length: 20 }, () => store.read()))
    await expect.poll(() => ledger.troubles).toContain('slow_reader')
    ledger.connection.close()
    await answers
    expect(await quotaUsed()).toBe(0)
  })

  test('a worker that says nothing for half a minute is given up', async () => {
    const time = new ManualClock()
    ledger = await openOwnedLedger(folder, clock, { owner: time, worker: new ManualClock() })
    await time.advance(30_000)
    expect(ledger.troubles).toEqual([])
    await time.advance(5_000)
    expect(ledger.troubles).toContain('silent')
  })

  test('names another request like an earlier one only when that is over', async () => {
    await open()
    const many = { ...plan, requestsPerMinute: 1_000, requestsPerMonth: 1_000 }
    const someOpenings = (stream: boolean) => Array.from({ length: 20 }, () => openingOf(stream))
    const streams = await admitAll(someOpenings(true), many)
    await Promise.all(streams.map(async (stream) => stream.durable()))
    for (let round = 0; round < 5; round += 1) {
      const answers = await admitAll(someOpenings(false), many)
      for (const [index, answer] of answers.entries())
        answer.settle(index % 2 === 0 ? answered : { ...answered, charged: 0 }, 'due')
      await Promise.all(answers.map(async (answer) => answer.durable()))
      for (const answer of answers) answer.deliver()
      streams[round]!.deliver()
      streams[round]!.settle(answered, 'done')
      // The owner has forgotten it, and its number may name another request.
      await expect(streams[round]!.durable()).rejects.toThrow(LedgerUnavailable)
    }
    for (const stream of streams.slice(5)) stream.settle({ ...answered, charged: 0 }, 'none')
    await expect.poll(() => ledger.owner.inFlight).toBe(0)
    expect(await quotaUsed()).toBe(55)
    const written = await rows()
    expect(written).toHaveLength(120)
    expect(written.filter(({ state }) => state !== 'done')).toEqual([])
    expect(ledger.troubles).toEqual([])
  })

  test('tells again the terms that many others have replaced', async () => {
    await open()
    const admit = async (profile: string, keyId: string): Promise<void> => {
      const admission = await ledger.admit({ ...openingOf(), profile, keyId }, { ...plan, requestsPerMinute: 10_000 })
      admission.settle({ charged: 0, attempts: [], totalMs: 1 }, 'none')
    }
    const keys = Array.from({ length: 1_030 }, (_, index) => `key_${index}`)
    for (const keyId of keys) await admit('first', keyId)
    for (const profile of Array.from({ length: 10 }, (_, index) => `profile_${index}`)) await admit(profile, 'key_5')
    await admit('first', 'key_0')
    await admit('first', 'key_1029')
    await ledger.owner.flush()
    const kept = await db.selectFrom('requests').select(['key_id', 'profile']).orderBy('id').execute()
    expect(kept.map(({ key_id, profile }) => `${key_id} ${profile}`)).toEqual([
      ...keys.map((keyId) => `${keyId} first`),
      ...Array.from({ length: 10 }, (_, index) => `key_5 profile_${index}`),
      'key_0 first',
      'key_1029 first',
    ])
    expect(ledger.troubles).toEqual([])
  })

  test('messages arrive whole and in order, however their bytes are cut', async () => {
    await open()
    const [left, right] = duplexPair()
    const seen: unknown[] = []
    const listener = { onMessage: (message: unknown) => void seen.push(message), onBroken: () => {} }
    const socket = new FramedSocket(right, maxMessageBytes, listener)
    const bytes = Buffer.concat([frame('[{"a":1},{"a":2}]'), frame('[{"a":3}]'), frame('[]'), frame('[{"a":4}]')])
    for (let at = 0; at < bytes.length; at += 3) {
      left.write(bytes.subarray(at, at + 3))
      await nextTurn()
    }
    expect(seen).toEqual([{ a: 1 }, { a: 2 }, { a: 3 }, { a: 4 }])
    socket.destroy()
  })
})

describe('a store of the owner', () => {
  interface Store {
    add(...values: unknown[]): Promise<unknown>
    fail(): Promise<never>
    huge(): Promise<string>
    odd(): Promise<unknown>
    disk(): Promise<never>
    toString(): Promise<string>
    close(): Promise<void>
  }
  let isClosed = false
  let store: Store
  beforeEach(async () => {
    const served = {
      add: (...values: unknown[]) => Promise.resolve(values),
      fail: () => Promise.reject(new TooManySaves()),
      odd: () => Promise.resolve(() => 'a function'),
      huge: () => Promise.resolve('x'.repeat(maxMessageBytes)),
      disk: () => Promise.reject(Object.assign(new Error('constraint'), { code: 'ERR_SQLITE_ERROR', errcode: 1555 })),
      close: () => {
        isClosed = true
      },
    }
    ledger = await openOwnedLedger(folder, clock, {}, { store: served })
    store = remoteStore<Store>(ledger.connection, 'store')
  })

  test('takes and returns any values, and its errors keep what their catchers look for', async () => {
    const values = [undefined, null, 1.5, 'ü\n', new Uint8Array([1, 2]), { a: undefined }, new Map([[1, 2]])]
    expect(await store.add(...values)).toEqual(values)
    await expect(store.odd()).rejects.toThrow('could not be cloned')
    await expect(store.add(() => 1)).rejects.toThrow('could not be cloned')
    await expect(store.fail()).rejects.toThrow(TooManySaves)
    await expect(store.disk()).rejects.toMatchObject({ message: 'constraint', code: 'ERR_SQLITE_ERROR', errcode: 1555 })
  })

  test('a message that is too large fails for its caller alone, in either direction', async () => {
    await expect(store.add('x'.repeat(maxMessageBytes))).rejects.toThrow('too large')
    const half = 'x'.repeat(maxMessageBytes / 2)
    await expect(store.add(half, half.slice(500))).resolves.toHaveLength(2)
    await expect(store.huge()).rejects.toThrow(StoreUnavailable)
    expect(ledger.troubles).toEqual([])
  })

  test('cannot be closed by a worker, and has no other methods than its own', async () => {
    await store.close()
    expect(isClosed).toBe(false)
    await expect(
      ledger.connection.ask({ do: 'store', noun: 'store', method: 'close', args: [] }, { limitMs: 1_000 }),
    ).rejects.toThrow('no such method')
    await expect(store.toString()).rejects.toThrow('no such method')
    await expect(remoteStore<Store>(ledger.connection, 'constructor').add()).rejects.toThrow('no such method')
  })
})
