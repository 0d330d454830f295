import { describe, expect, test } from 'vitest'
import type { RoutingSort } from '../../../src/domain/routing-policy.ts'
import type { CacheSessionStore, StoredCacheSession } from '../../../src/gateway/cache/session-store.ts'
import { textChecksum } from '../../../src/runtime/checksum.ts'
import {
  AgentSession,
  CacheWorld,
  type CacheCondition,
  type CacheWorldOptions,
  type CachingBackend,
  type SentTurn,
  type TurnResult,
} from '../../simulation/cache-world.ts'
import type { FakeSink } from '../fake-gateway.ts'

const minuteMs = 60_000

/** Equal backends with caches of their own. */
function backends(
  count: number,
  conditionAt: (id: string, ms: number) => CacheCondition = () => 'answers',
): CachingBackend[] {
  return Array.from({ length: count }, (_, index) => {
    const id = `b${index}`
    return { id, domain: id, medianMs: 500, conditionAt: (ms) => conditionAt(id, ms) }
  })
}

function worldOf(options: Partial<CacheWorldOptions> = {}): CacheWorld {
  return new CacheWorld({ backends: backends(3), routing: { sort: 'order' }, ...options })
}

/** Sends a turn after a pause. */
async function turn(world: CacheWorld, sent: SentTurn, pauseMs = 5_000): Promise<TurnResult> {
  await world.clock.until(new Promise<void>((resolve) => void world.clock.after(pauseMs, resolve)))
  return await world.clock.until(world.send(sent))
}

/** The verdict of a turn. */
const verdictOf = ({ outcome }: TurnResult) => outcome?.attempts.at(-1)?.cache
const reasonOf = (result: TurnResult) => verdictOf(result)?.reason

describe('a session', () => {
  test.each(['order', 'balanced', 'latency', 'price'] as RoutingSort[])(
    'stays at its backend with sort %s',
    async (sort) => {
      const world = worldOf({ backends: backends(5), routing: { sort } })
      for (let count = 0; count < 10; count++) {
        const session = new AgentSession(`session ${count}`)
        const first = await turn(world, session.next())
        expect(reasonOf(first)).toBe('first')
        for (let later = 0; later < 4; later++) {
          const result = await turn(world, session.next())
          expect(result.backend).toBe(first.backend)
          expect(reasonOf(result)).toBe('hit')
          expect(result.cachedTokens / result.inputTokens).toBeGreaterThan(0.9)
        }
      }
    },
  )

  test('moves if sessions do not stay anywhere', async () => {
    const world = worldOf({ backends: backends(5), routing: { sort: 'balanced', sticky: false } })
    const session = new AgentSession('s')
    const used = new Set<string | undefined>()
    for (let count = 0; count < 12; count++) used.add((await turn(world, session.next())).backend)
    expect(used.size).toBeGreaterThan(1)
  })

  test('stays where it failed over to, and returns when only the first cache may still be read', async () => {
    let isDown = false
    const world = worldOf({ backends: backends(2, (id) => (id === 'b0' && isDown ? 'refuses' : 'answers')) })
    const session = new AgentSession('s')
    expect((await turn(world, session.next())).backend).toBe('b0')
    isDown = true
    const moved = await turn(world, session.next())
    expect(moved.backend).toBe('b1')
    expect(reasonOf(moved)).toBe('backend')
    isDown = false
    for (let count = 0; count < 3; count++) expect((await turn(world, session.next(), minuteMs)).backend).toBe('b1')
    // Both are cold by now.
    const late = await turn(world, session.next(), 10 * minuteMs)
    expect(late.backend).toBe('b0')
    expect(reasonOf(late)).toBe('expired')
  })

  test('leaves a backend whose circuit breaker is open, and does not override what the caller asks for', async () => {
    const world = worldOf()
    const session = new AgentSession('s')
    await turn(world, session.next())
    expect((await turn(world, { ...session.next(), routing: { order: ['b2'] } })).backend).toBe('b2')
    expect((await turn(world, { ...session.next(), routing: { only: ['b1'] } })).backend).toBe('b1')
    expect((await turn(world, { ...session.next(), routing: { ignore: ['b1'] } })).backend).toBe('b2')
  })

  test('does not stay where nothing was read twice although it should have been', async () => {
    const session = new AgentSession('s')
    let isB0Down = false
    const failing = worldOf({
      backends: backends(2, (id) => (id === 'b0' && isB0Down ? 'refuses' : 'answers')),
    })
    expect((await turn(failing, session.next())).backend).toBe('b0')
    isB0Down = true
    expect((await turn(failing, session.next())).backend).toBe('b1')
    isB0Down = false
    failing.caches.clear()
    expect(reasonOf(await turn(failing, session.next()))).toBe('unread')
    failing.caches.clear()
    expect((await turn(failing, session.next())).backend).toBe('b1')
    expect((await turn(failing, session.next())).backend).toBe('b0')
  })

  test('moves between backends with the same cache, and reads it there', async () => {
    let isDown = false
    const shared = backends(3, (id) => (id === 'b0' && isDown ? 'refuses' : 'answers'))
    const world = worldOf({ backends: shared.map((one) => (one.id === 'b1' ? one : { ...one, domain: 'shared' })) })
    const session = new AgentSession('s')
    expect((await turn(world, session.next())).backend).toBe('b0')
    isDown = true
    const moved = await turn(world, session.next())
    expect(moved.backend).toBe('b2')
    expect(reasonOf(moved)).toBe('hit')
  })

  test('of one account is not that of another one with the same name', async () => {
    const world = worldOf()
    const session = new AgentSession('s')
    await turn(world, session.next())
    const next = session.next()
    expect(reasonOf(await turn(world, { ...next, accountId: 'acc_2' }))).toBe('first')
    expect(reasonOf(await turn(world, next))).toBe('hit')
  })

  test('is not another one whose name has the same checksum', async () => {
    const [name, other] = ['session 49041', 'session 648320'] as const
    expect(textChecksum(name)).toBe(textChecksum(other))
    const world = worldOf()
    const session = new AgentSession(name)
    await turn(world, session.next())
    const next = session.next()
    expect(reasonOf(await turn(world, { ...next, session: other }))).toBe('first')
    expect(reasonOf(await turn(world, next))).toBe('hit')
  })

  test('without a name is found by its opening', async () => {
    const world = worldOf({ backends: backends(5), routing: { sort: 'balanced' } })
    const session = new AgentSession('s')
    const first = await turn(world, { ...session.next(), isAnonymous: true })
    for (let count = 0; count < 4; count++) {
      const later = await turn(world, { ...session.next(), isAnonymous: true })
      expect(later.backend).toBe(first.backend)
      expect(reasonOf(later)).toBe('hit')
    }
  })

  test('of an agent with a helper remembers both conversations', async () => {
    const world = worldOf({ backends: backends(5), routing: { sort: 'balanced' } })
    const agent = new AgentSession('agent')
    const helper = new AgentSession('helper')
    const as = (sent: SentTurn): SentTurn => ({ ...sent, session: 'both' })
    const [one, other] = [await turn(world, as(agent.next())), await turn(world, as(helper.next()))]
    expect(reasonOf(other)).toBe('first')
    for (let count = 0; count < 3; count++) {
      const results = [await turn(world, as(agent.next())), await turn(world, as(helper.next()))]
      expect(results.map(reasonOf)).toEqual(['hit', 'hit'])
      expect(results.map(({ backend }) => backend)).toEqual([one.backend, other.backend])
    }
  })

  test('of short prompts is not remembered', async () => {
    const world = worldOf()
    const session = new AgentSession('s', 100)
    expect(verdictOf(await turn(world, session.next()))).toBeUndefined()
  })
})

describe('a short Retry-After of the backend that holds the cache', () => {
  const limited = (retryAfterMs: number, untilMs = 1e9) =>
    backends(2, (id, ms) => (id === 'b0' && ms >= 60_000 && ms < untilMs ? { retryAfterMs } : 'answers'))

  test('moves none of 30 sessions', async () => {
    const world = worldOf({ backends: limited(2_000, 62_000) })
    const sessions = Array.from({ length: 30 }, (_, index) => new AgentSession(`s${index}`))
    await world.clock.until(Promise.all(sessions.map((session) => world.send(session.next()))))
    await world.clock.until(new Promise<void>((resolve) => void world.clock.after(60_000 - world.nowMs, resolve)))
    const results = await world.clock.until(Promise.all(sessions.map((session) => world.send(session.next()))))
    expect(results.map(({ backend }) => backend)).toEqual(results.map(() => 'b0'))
    expect(results.map(reasonOf)).toEqual(results.map(() => 'hit'))
    expect(Math.max(...results.map(({ waitedMs }) => waitedMs))).toBeLessThan(6_000)
    const failed = results.flatMap(({ outcome }) =>
      outcome!.attempts.filter((attempt) => attempt.outcome !== 'answered'),
    )
    expect(failed.length).toBeLessThanOrEqual(30)
  })

  test('is not waited out if it is longer than what filling another cache costs', async () => {
    const world = worldOf({ backends: limited(9_000) })
    const small = new AgentSession('small', 2_000)
    await turn(world, small.next(), 0)
    const moved = await turn(world, small.next(), 60_000)
    expect(moved.backend).toBe('b1')
    expect(moved.waitedMs).toBeLessThan(4_000)
  })

  test('is waited out at most twice, and for at most 10 s in all', async () => {
    const world = worldOf({ backends: limited(4_000) })
    const session = new AgentSession('s', 200_000)
    await turn(world, session.next(), 0)
    const moved = await turn(world, session.next(), 60_000)
    expect(moved.backend).toBe('b1')
    expect(moved.outcome!.attempts.map(({ outcome }) => outcome)).toEqual([
      'rate_limited',
      'rate_limited',
      'rate_limited',
      'answered',
    ])
    expect(moved.waitedMs).toBeLessThan(11_000)
  })

  test('is no longer waited out once the client disconnected, before and after an attempt', async () => {
    const world = worldOf({ backends: limited(4_000) })
    const sessions = [new AgentSession('one', 200_000), new AgentSession('two', 200_000)]
    for (const session of sessions) await turn(world, session.next(), 0)
    await world.clock.until(world.pause(60_000 - world.nowMs))
    const called = world.calls
    const results = await world.clock.until(
      Promise.all(
        sessions.map(async (session, index) => {
          await world.pause(index * 100)
          const onSink = (sink: FakeSink): void => void world.clock.after(1_000, () => sink.disconnect())
          return await world.send({ ...session.next(), onSink })
        }),
      ),
    )
    for (const { outcome, waitedMs } of results) {
      expect(outcome?.errorCode).toBe('client_closed')
      expect(waitedMs).toBe(1_000)
    }
    // The second one found the circuit breaker open, and asked nobody.
    expect(results.map(({ outcome }) => [outcome?.attempts.length, outcome?.charged])).toEqual([
      [1, 1],
      [0, 0],
    ])
    expect(world.calls).toBe(called + 1)
  })

  test('is not waited out by a session that has nothing cached there', async () => {
    const world = worldOf({ backends: limited(2_000) })
    await turn(world, new AgentSession('one').next(), 0)
    const other = await turn(world, new AgentSession('other').next(), 60_000)
    expect(other.backend).toBe('b1')
    expect(other.waitedMs).toBeLessThan(3_000)
  })
})

describe('why the cache missed', () => {
  /** Two turns; the second one is changed before it is sent. */
  async function secondTurn(change: (sent: SentTurn) => SentTurn, world = worldOf()): Promise<TurnResult> {
    const session = new AgentSession('s')
    await turn(world, session.next())
    await turn(world, session.next())
    return await turn(world, change(session.next()))
  }
  const replaced = (index: number) => (sent: SentTurn) => ({
    ...sent,
    messages: sent.messages.with(index, { role: 'user', content: 'Changed' }),
  })

  test('says that tools changed', async () => {
    const result = await secondTurn((sent) => ({ ...sent, tools: [] }))
    expect(verdictOf(result)).toMatchObject({ reason: 'tools', expected: 0, read: 0 })
  })

  test('says that the system prompt changed', async () => {
    const result = await secondTurn((sent) => ({
      ...sent,
      messages: sent.messages.with(0, { role: 'system', content: 'New. '.repeat(900) }),
    }))
    expect(reasonOf(result)).toBe('system')
  })

  test('says what changed in place, although most bytes of an earlier prompt are not read again', async () => {
    for (const at of [500, 900, 1_300, 1_700, 2_100]) {
      /** The system prompt with one other letter in the middle. */
      const edited = (sent: SentTurn): SentTurn => {
        const { content } = sent.messages[0] as { content: string }
        const changed = `${content.slice(0, at)}!${content.slice(at + 1)}`
        return { ...sent, messages: sent.messages.with(0, { role: 'system', content: changed }) }
      }
      const world = worldOf()
      const session = new AgentSession('s')
      await turn(world, session.next())
      await turn(world, session.next())
      expect(verdictOf(await turn(world, edited(session.next())))).toMatchObject({ reason: 'system', read: 0 })
      // From then on, the edited prompt is compared.
      world.caches.clear()
      expect(reasonOf(await turn(world, edited(session.next())))).toBe('unread')
    }
  })

  test('says which item changed', async () => {
    const long = new AgentSession('s', 2_000)
    const world = worldOf()
    for (let count = 0; count < 19; count++) await turn(world, long.next())
    const result = await turn(world, replaced(14)(long.next()))
    expect(verdictOf(result)).toMatchObject({ reason: 'item', item: 14 })
    const { expected, read } = verdictOf(result)!
    // What stands before the item is still read.
    expect(Math.abs(expected - read!) / expected).toBeLessThan(0.1)
  })

  test('says that it expired', async () => {
    const session = new AgentSession('s')
    const world = worldOf()
    await turn(world, session.next())
    expect(reasonOf(await turn(world, session.next(), 6 * minuteMs))).toBe('expired')
    expect(reasonOf(await turn(world, session.next(), 4 * minuteMs))).toBe('hit')
  })

  test('says that the prompt was too short', async () => {
    const messages = [{ role: 'user', content: 'x'.repeat(50) }]
    const world = worldOf()
    const padded = { session: 'x'.repeat(200), tools: [{ type: 'function', function: { name: 'x' } }] }
    const sent = { ...padded, messages, routing: { ignore: Array.from({ length: 20 }, () => 'y'.repeat(100)) } }
    await turn(world, sent)
    expect(reasonOf(await turn(world, sent))).toBe('short')
  })

  test('says that the provider did not read it', async () => {
    const world = worldOf()
    const result = await secondTurn((sent) => {
      world.caches.clear()
      return sent
    }, world)
    expect(verdictOf(result)).toMatchObject({ reason: 'unread', read: 0 })
    expect(verdictOf(result)!.expected).toBe(verdictOf(result)!.before)
  })
})

test('a stream that is cut at any byte leaves a session whose next turn is explained', async () => {
  let cutAfter: number | undefined
  const world = worldOf({
    backends: backends(2, (id) => (id === 'b0' && cutAfter !== undefined ? { cutAfter } : 'answers')),
  })
  const reasons = new Map<string, number>()
  for (let bytes = 0; bytes < 480; bytes += 1) {
    const session = new AgentSession(`s${bytes}`)
    await turn(world, session.next(), 100)
    cutAfter = bytes
    const cut = await turn(world, session.next(), 100)
    cutAfter = undefined
    world.breakers.reset('b0')
    expect(cut.outcome).toBeDefined()
    const next = await turn(world, session.next(), 100)
    expect(next.outcome?.errorCode).toBeUndefined()
    const reason = reasonOf(next)!
    reasons.set(reason, (reasons.get(reason) ?? 0) + 1)
  }
  expect([...reasons.keys()].filter((reason) => reason !== 'hit' && reason !== 'backend')).toEqual([])
  expect(reasons.get('hit')).toBeGreaterThan(400)
})

test('a fusion that a single model answers stays at the backend that holds the cache', async () => {
  let isDown = true
  const world = worldOf({
    backends: backends(3, (id) => (id === 'b0' && isDown ? 'refuses' : 'answers')),
    profileId: 'svc-router/fusion',
  })
  const session = new AgentSession('s')
  /** The model works with its tools, so nobody deliberates. */
  const inTools = (sent: SentTurn): SentTurn => ({
    ...sent,
    messages: [
      ...sent.messages,
      { role: 'assistant', tool_calls: [{ id: 'c', type: 'function', function: { name: 'look', arguments: '{}' } }] },
      { role: 'tool', tool_call_id: 'c', content: 'Found.' },
    ],
  })
  const first = await turn(world, inTools(session.next()))
  expect(first.backend).toBe('b1')
  isDown = false
  world.breakers.reset('b0')
  expect((await turn(world, inTools(session.next()))).backend).toBe('b1')
})

/** A store in memory that can be slow. */
class FakeStore implements CacheSessionStore {
  readonly rows = new Map<string, StoredCacheSession>()
  lookups = 0
  #answer: () => Promise<void>

  constructor(answer: () => Promise<void> = async () => {}) {
    this.#answer = answer
  }

  async findCacheSession(accountId: string, session: string) {
    this.lookups += 1
    await this.#answer()
    return this.rows.get(`${accountId} ${session}`)
  }

  async saveCacheSessions(sessions: readonly StoredCacheSession[]) {
    for (const one of sessions) this.rows.set(`${one.accountId} ${one.session}`, one)
  }
}

describe('sessions that other processes know', () => {
  test('go on at the same backend there, and after a restart', async () => {
    const store = new FakeStore()
    const one = worldOf({ backends: backends(5), routing: { sort: 'balanced' }, store })
    const { clock, caches } = one
    for (let count = 0; count < 10; count++) {
      const session = new AgentSession(`s${count}`)
      const first = await turn(one, session.next())
      await one.sessions[Symbol.asyncDispose]()
      const other = worldOf({
        backends: backends(5),
        routing: { sort: 'balanced' },
        store,
        clock,
        caches,
        seed: count + 2,
      })
      const second = await turn(other, session.next())
      expect(second.backend).toBe(first.backend)
      expect(reasonOf(second)).toBe('hit')
      const moved = await turn(other, { ...session.next(), routing: { ignore: [first.backend!] } })
      await other.sessions[Symbol.asyncDispose]()
      // The first process notices that it missed turns, and reads what the other one wrote.
      expect((await turn(one, session.next())).backend).toBe(moved.backend)
    }
  })

  test('are read only if the prompt continues something, and no text is stored', async () => {
    const store = new FakeStore()
    const world = worldOf({ store })
    const session = new AgentSession('secret name')
    await turn(world, session.next())
    expect(store.lookups).toBe(0)
    await turn(world, session.next())
    expect(store.lookups).toBe(0)
    await world.sessions[Symbol.asyncDispose]()
    expect(store.rows.size).toBe(1)
    const text = JSON.stringify([...store.rows.values()])
    for (const part of ['secret', 'Be brief', 'Question', 'look']) expect(text).not.toContain(part)
    expect(text.length).toBeLessThan(600)
    await turn(world, { ...session.next(), accountId: 'acc_2' })
    await world.sessions[Symbol.asyncDispose]()
    // Nobody can see that two accounts use the same name.
    expect(new Set([...store.rows.values()].map((row) => row.session)).size).toBe(2)
  })

  test('are not waited for longer than 5 ms, and not at all for a while after that happened often', async () => {
    const store = new FakeStore(() => new Promise(() => {}))
    const world = worldOf({ store, backends: backends(2).map((one) => ({ ...one, medianMs: 0 })) })
    const send = (name: string): Promise<unknown> => {
      const session = new AgentSession(name)
      session.next()
      return world.send(session.next())
    }
    const sent = Array.from({ length: 8 }, (_, index) => send(`s${index}`))
    await world.clock.until(world.pause(6))
    expect(world.calls).toBe(8)
    expect(world.calledMs).toBe(5)
    const later = Array.from({ length: 20 }, (_, index) => send(`later ${index}`))
    await world.clock.until(world.pause(0))
    expect(world.calls).toBe(28)
    expect(store.lookups).toBe(8)
    await world.clock.until(Promise.all([...sent, ...later]))
  })
})
