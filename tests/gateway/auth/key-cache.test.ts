import { describe, expect, test } from 'vitest'
import type { ServiceEvent } from '../../../src/domain/events.ts'
import { noLimits } from '../../../src/domain/key-limits.ts'
import { KeyCache } from '../../../src/gateway/auth/key-cache.ts'
import type { KeyEntry, KeyStore } from '../../../src/gateway/ports.ts'
import { ManualClock, settled } from '../manual-clock.ts'

/** A store whose answers a test can delay, change, or break. */
class ScriptedStore implements KeyStore {
  readonly entries = new Map<string, KeyEntry>()
  revisionNumber = 1
  finds = 0
  revisions = 0
  broken = false
  /** While set, queries wait until it is resolved. */
  held: PromiseWithResolvers<void> | undefined

  async find(digest: string): Promise<KeyEntry | undefined> {
    this.finds += 1
    const entry = this.entries.get(digest)
    await this.held?.promise
    if (this.broken) throw new Error('the store is away')
    return entry
  }

  async revision(): Promise<number> {
    this.revisions += 1
    await this.held?.promise
    if (this.broken) throw new Error('the store is away')
    return this.revisionNumber
  }

  set(digest: string, state: 'active' | 'revoked'): void {
    this.entries.set(digest, entryOf(digest, state))
    this.revisionNumber += 1
  }
}

function entryOf(digest: string, state: 'active' | 'revoked'): KeyEntry {
  const createdAtMs = 0
  return {
    key: {
      id: `key_${digest}`,
      accountId: 'acc',
      name: '',
      hint: '',
      state,
      endsAtMs: null,
      createdAtMs,
      revokedAtMs: null,
      limits: noLimits,
    },
    account: { id: 'acc', name: 'a', planId: 'max', suspended: false, createdAtMs },
  }
}

async function opened() {
  const store = new ScriptedStore()
  const clock = new ManualClock()
  const events: ServiceEvent[] = []
  let changes = 0
  const directory = new KeyCache(
    store,
    clock,
    (event) => void events.push(event),
    () => {
      changes += 1
    },
  )
  store.set('k', 'active')
  await directory.start()
  return { store, clock, events, directory, changes: () => changes }
}

const state = async (directory: KeyCache, digest = 'k'): Promise<string | undefined> =>
  (await directory.find(digest))?.key.state

describe('cached keys', () => {
  test('a cached key is returned synchronously, and the store is queried once', async () => {
    const { store, clock, directory } = await opened()
    expect(await state(directory)).toBe('active')
    for (let second = 0; second < 30; second++) {
      await clock.advance(1_000)
      const found = directory.find('k')
      expect(found).not.toBeInstanceOf(Promise)
    }
    expect(store.finds).toBe(1)
  })

  test('a revocation takes effect at the next poll, within a quarter of a second', async () => {
    const { store, clock, directory, changes } = await opened()
    await directory.find('k')
    store.set('k', 'revoked')
    await clock.advance(249)
    expect(await state(directory)).toBe('active')
    await clock.advance(1)
    expect(await state(directory)).toBe('revoked')
    expect(changes()).toBe(1)
  })

  test('a lookup that began before a change is not cached after it', async () => {
    const { store, clock, directory } = await opened()
    store.held = Promise.withResolvers()
    const { held } = store
    const early = directory.find('k')
    // The change is made and polled while the lookup with the old answer is running.
    store.held = undefined
    store.set('k', 'revoked')
    await clock.advance(250)
    held.resolve()
    await early
    expect(await state(directory)).toBe('revoked')
  })

  test('a lookup that began before a change is not joined after it', async () => {
    const { store, clock, directory } = await opened()
    store.held = Promise.withResolvers()
    const first = store.held
    const early = state(directory)
    store.held = undefined
    store.set('k', 'revoked')
    await clock.advance(250)
    store.held = Promise.withResolvers()
    const second = store.held
    const late = state(directory)
    first.resolve()
    expect(await early).toBe('active')
    // The early lookup, which has ended, must not end the late one for others.
    const joining = state(directory)
    expect(store.finds).toBe(2)
    second.resolve()
    expect([await late, await joining]).toEqual(['revoked', 'revoked'])
  })

  test('an unknown key is cached for five seconds, and not beyond a change', async () => {
    const { store, clock, directory } = await opened()
    expect(await directory.find('new')).toBeUndefined()
    await clock.advance(4_000)
    expect(await directory.find('new')).toBeUndefined()
    expect(store.finds).toBe(1)
    await clock.advance(1_500)
    await directory.find('new')
    expect(store.finds).toBe(2)
    store.set('new', 'active')
    await clock.advance(250)
    expect(await state(directory, 'new')).toBe('active')
  })

  test('concurrent lookups of one key share one query', async () => {
    const { store, directory } = await opened()
    const found = await Promise.all(Array.from({ length: 100 }, () => Promise.resolve(directory.find('k'))))
    expect(found.every((entry) => entry?.key.state === 'active')).toBe(true)
    expect(store.finds).toBe(1)
  })
})

test('any number of made-up keys evict no real one', async () => {
  const { store, directory } = await opened()
  await directory.find('k')
  for (let index = 0; index < 60_000; index++) await directory.find(`made-up-${index}`)
  const finds = store.finds
  expect(directory.find('k')).not.toBeInstanceOf(Promise)
  // The most recent ones are cached, the first were evicted.
  expect(directory.find('made-up-59999')).toBeUndefined()
  await directory.find('made-up-0')
  expect(store.finds).toBe(finds + 1)
})

describe('an unavailable store', () => {
  test('cached keys stay valid for five seconds, then none are, and the outage is reported', async () => {
    const { store, clock, directory, events } = await opened()
    await directory.find('k')
    store.broken = true
    await clock.advance(4_700)
    expect(directory.isFresh()).toBe(true)
    expect(await state(directory)).toBe('active')
    await clock.advance(400)
    expect(directory.isFresh()).toBe(false)
    await expect(directory.find('k')).rejects.toThrow()
    expect(events.length).toBeGreaterThan(3)
    expect(events.every(({ event }) => event === 'store_failing')).toBe(true)
    expect(JSON.stringify(events)).not.toContain('away')
  })

  test('an unknown key is an error, not “no such key”', async () => {
    const { store, directory } = await opened()
    store.broken = true
    await expect(directory.find('never-asked-before')).rejects.toThrow()
  })

  test('once cached keys have expired, is not asked for keys but only polled', async () => {
    const { store, clock, directory } = await opened()
    await directory.find('k')
    store.broken = true
    await clock.advance(6_000)
    const { finds } = store
    for (const digest of ['k', 'another']) await expect(directory.find(digest)).rejects.toThrow('does not answer')
    expect(store.finds).toBe(finds)
  })

  test('is asked once before cached keys are used after a pause of the process', async () => {
    const { store, clock, directory } = await opened()
    await directory.find('k')
    store.set('k', 'revoked')
    const { revisions } = store
    // The timers of a paused process do not run.
    clock.skip(20_000)
    expect(directory.isFresh()).toBe(false)
    expect(await Promise.all([state(directory), state(directory)])).toEqual(['revoked', 'revoked'])
    expect(store.revisions).toBe(revisions + 1)
  })

  test('cached keys are valid again as soon as the store answers', async () => {
    const { store, clock, directory } = await opened()
    await directory.find('k')
    store.broken = true
    await clock.advance(10_000)
    store.broken = false
    await clock.advance(250)
    expect(directory.isFresh()).toBe(true)
    expect(await state(directory)).toBe('active')
  })

  test('a hung store counts as unavailable: lookups and polls time out after two seconds', async () => {
    const { store, clock, directory } = await opened()
    store.held = Promise.withResolvers()
    const found = directory.find('k') as Promise<unknown>
    const failed = expect(found).rejects.toThrow('did not answer')
    await clock.advance(2_000)
    await failed
    await clock.advance(5_000)
    expect(directory.isFresh()).toBe(false)
    const { held } = store
    store.held = undefined
    held.resolve()
    await clock.advance(2_500)
    expect(directory.isFresh()).toBe(true)
    expect(await state(directory)).toBe('active')
  })

  test('a hung store gets at most 256 queries at a time', async () => {
    const { store, clock, directory } = await opened()
    store.held = Promise.withResolvers()
    const asked = Array.from({ length: 300 }, (_, index) =>
      Promise.resolve(directory.find(`d${index}`)).catch(() => 'refused'),
    )
    await settled()
    expect(store.finds).toBe(256)
    // Also after a change, although nobody joins these any more.
    store.held = undefined
    store.set('k', 'revoked')
    await clock.advance(250)
    await expect(directory.find('k')).rejects.toThrow('too many')
    await clock.advance(2_000)
    expect((await state(directory)) === 'revoked' && store.finds).toBe(257)
    expect((await Promise.all(asked)).every((entry) => entry === 'refused')).toBe(true)
  })
})

test('a closed cache sends no queries', async () => {
  const { store, clock, directory } = await opened()
  directory.close()
  const { revisions } = store
  await clock.advance(10_000)
  expect(store.revisions).toBe(revisions)
  expect(clock.waiting).toBe(0)
})
