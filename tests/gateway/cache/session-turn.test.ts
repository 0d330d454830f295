import { describe, expect, test } from 'vitest'
import type { Usage } from '../../../src/domain/conversation.ts'
import type { JsonObject } from '../../../src/domain/json.ts'
import { formatById } from '../../../src/formats/formats.ts'
import { bodyShape, JsonScan } from '../../../src/formats/json-scan.ts'
import { CacheSessions } from '../../../src/gateway/cache/cache-sessions.ts'
import type { Holder } from '../../../src/gateway/cache/cached-prefix.ts'
import { readState } from '../../../src/gateway/cache/session-state.ts'
import type { StoredCacheSession } from '../../../src/gateway/cache/session-store.ts'
import type { SessionTurn } from '../../../src/gateway/cache/session-turn.ts'
import { KeyedDigest } from '../../../src/runtime/keyed-digest.ts'
import { SimulatedTime } from '../../simulation/simulated-time.ts'
import { someBackend } from '../routing/some-backend.ts'

const [usualMs, hourMs] = [300_000, 3_600_000]
const backend = someBackend('claude', { format: 'anthropic-messages' })

/** One session, with what is stored of it. */
class OneSession {
  readonly #clock = new SimulatedTime()
  readonly #saved: StoredCacheSession[] = []
  readonly #sessions = new CacheSessions({
    digest: new KeyedDigest(new Uint8Array(32)),
    clock: this.#clock,
    log: () => {},
    store: {
      findCacheSession: () => Promise.resolve(undefined),
      saveCacheSessions: (sessions) => Promise.resolve(void this.#saved.push(...sessions)),
    },
  })

  /** Begins a turn that the backend answers, and that has not ended. */
  async answer(body: JsonObject): Promise<SessionTurn> {
    const bytes = Buffer.from(JSON.stringify(body))
    const scan = new JsonScan(bodyShape)
    scan.push(bytes)
    const request = {
      id: 'req_1',
      format: 'anthropic-messages',
      bytes,
      members: scan.members(bytes),
      body,
      timeoutMs: undefined,
      statedSession: 'one',
    } as const
    const conversation = formatById('anthropic-messages').readRequest(body)
    const turn = await this.#sessions.begin({ accountId: 'acc_1', profile: 'p', request, conversation })
    turn!.answeredBy({ target: backend, startedMs: this.#clock.monotonicMs() }, [backend], true)
    return turn!
  }

  /** How many turns each conversation had. */
  async turns(): Promise<readonly number[]> {
    await this.#sessions[Symbol.asyncDispose]()
    return readState(this.#saved.at(-1)!.state)!.map(({ turns }) => turns)
  }

  /** Another backend answers a turn, because the first one broke off. */
  rescue(turn: SessionTurn): void {
    const other = { ...backend, id: 'c2', issuer: 'another' }
    turn.answeredBy({ target: other, startedMs: this.#clock.monotonicMs() }, [backend, other], true)
  }

  /** The cache of each conversation, as stored; the one that was answered last is first. */
  async holders(): Promise<readonly Holder[]> {
    await this.#sessions[Symbol.asyncDispose]()
    return readState(this.#saved.at(-1)!.state)!.map(({ holders }) => holders[0]!)
  }
}

/** Sends the turns of one session; for each one, returns how long its backend holds the prompt. */
async function lifetimesOf(turns: readonly JsonObject[]): Promise<(number | undefined)[]> {
  const session = new OneSession()
  const lifetimes: (number | undefined)[] = []
  for (const body of turns) {
    await session.answer(body)
    lifetimes.push((await session.holders())[0]?.lifetimeMs)
  }
  return lifetimes
}

/** What a provider reports that read so many tokens from its cache. */
const usageOf = (inputTokens: number, cachedTokens: number): Usage => ({
  source: 'counted',
  inputTokens,
  cachedTokens,
  outputTokens: 1,
  reasoningTokens: 0,
})

const text = 'Some instructions. '.repeat(200)
const hour = { cache_control: { type: 'ephemeral', ttl: '1h' } }
const user = (content: string, mark: JsonObject = {}): JsonObject => ({
  role: 'user',
  content: [{ type: 'text', text: content, ...mark }],
})
const assistant = { role: 'assistant', content: 'Yes.' }
const turnOf = (messages: readonly JsonObject[], more: JsonObject = {}): JsonObject => ({
  model: 'p',
  max_tokens: 100,
  system: text,
  messages,
  ...more,
})

test('a mark for an hour counts in the turn that adds it, and in those after it', async () => {
  const first = [user('One')]
  const second = [...first, assistant, user('Two')]
  const third = [...second, assistant, user('Three', hour)]
  const last = [...third, assistant, user('Four')]
  const turns = [first, second, third, last].map((messages) => turnOf(messages))
  expect(await lifetimesOf(turns)).toEqual([usualMs, usualMs, hourMs, hourMs])
})

test('a mark for an hour counts if a later turn adds it before the conversation', async () => {
  const next = [user('One'), assistant, user('Two')]
  const system = [{ type: 'text', text, ...hour }]
  expect(await lifetimesOf([turnOf([user('One')]), turnOf(next, { system })])).toEqual([usualMs, hourMs])
  expect(await lifetimesOf([turnOf([user('One')]), turnOf(next, hour)])).toEqual([usualMs, hourMs])
})

test('a mark for an hour no longer counts once it is gone', async () => {
  const next = [user('One'), assistant, user('Two')]
  expect(await lifetimesOf([turnOf([user('One')], hour), turnOf(next)])).toEqual([hourMs, usualMs])
})

const about = (customer: number): string => `${text}The customer is ${customer}. ${text}`
/** A conversation of so many questions, with a customer in the system prompt, and in the questions, where no byte is sampled. */
function questionsOf(count: number, customer: number, asked = 10_001): JsonObject {
  const messages = Array.from({ length: count }, (_, index) => [user(`${about(asked)}Question ${index}`), assistant])
  return turnOf(messages.flat().slice(0, -1), { system: about(customer) })
}

test('an answer that another backend continues is one turn', async () => {
  const session = new OneSession()
  session.rescue(await session.answer(turnOf([user('One')])))
  expect(await session.turns()).toEqual([1])
  const second = await session.answer(turnOf([user('One'), assistant, user('Two')]))
  expect(second.continuation).toMatchObject({ isSeen: true, began: 1, wentOn: 0 })
  session.rescue(second)
  expect(await session.turns()).toEqual([2])
  const third = await session.answer(turnOf([user('One'), assistant, user('Two'), assistant, user('Three')]))
  expect(third.continuation).toMatchObject({ began: 1, wentOn: 1 })
})

test('a prompt that changed in place is compared from then on, even if another turn was answered meanwhile', async () => {
  const session = new OneSession()
  ;(await session.answer(questionsOf(1, 10_001))).ended(usageOf(5_000, 0))
  const changed = await session.answer(questionsOf(2, 10_002))
  const overlapping = await session.answer(turnOf([user('Another conversation')]))
  expect(changed.verdict(usageOf(6_000, 0))?.reason).toBe('system')
  overlapping.ended(usageOf(2_000, 0))
  changed.ended(usageOf(6_000, 0))
  const next = await session.answer(questionsOf(3, 10_002))
  expect(next.verdict(usageOf(7_000, 0))?.reason).toBe('unread')
  expect(await session.holders()).toHaveLength(2)
})

test('usage counts for the conversation that caused it, if another one has the same sample', async () => {
  const session = new OneSession()
  const first = await session.answer(questionsOf(1, 10_001))
  const other = await session.answer(questionsOf(1, 10_002, 10_002))
  // It seemed to be the first conversation, of which the provider would have read more.
  other.ended(usageOf(4_000, 0))
  expect((await session.holders()).map(({ tokens }) => tokens)).toEqual([4_000, expect.any(Number)])
  first.ended(usageOf(5_000, 0))
  expect((await session.holders()).map(({ tokens }) => tokens)).toEqual([4_000, 5_000])
})

test('the input of an answer that broke off counts if its provider had counted it', async () => {
  const session = new OneSession()
  const cut = await session.answer(questionsOf(1, 10_001))
  cut.ended({ ...usageOf(5_000, 0), source: 'estimated', isInputCounted: true })
  expect(await session.holders()).toMatchObject([{ tokens: 5_000 }])
  const next = await session.answer(questionsOf(2, 10_001))
  expect(next.verdict({ ...usageOf(6_000, 5_000), source: 'estimated', isInputCounted: true })?.reason).toBe('hit')
  expect(next.verdict({ ...usageOf(6_000, 5_000), source: 'estimated' })?.reason).toBe('uncounted')
})

describe('a mark of 5 minutes that becomes one of an hour in place', () => {
  const marked = (ttl: string): JsonObject => ({ type: 'text', text, cache_control: { type: 'ephemeral', ttl } })

  test('counts at once at the end of the system prompt', async () => {
    const of = (ttl: string, ...more: JsonObject[]): JsonObject =>
      turnOf([user('One'), ...more], { system: [marked(ttl)] })
    expect(await lifetimesOf([of('5m'), of('1h', assistant, user('Two'))])).toEqual([usualMs, hourMs])
  })

  test('counts elsewhere once the provider reports a miss', async () => {
    const session = new OneSession()
    const system = (ttl: string): JsonObject => ({ system: [marked(ttl), { type: 'text', text }] })
    ;(await session.answer(turnOf([user('One')], system('5m')))).ended(usageOf(2_000, 0))
    const missing = await session.answer(turnOf([user('One'), assistant, user('Two')], system('1h')))
    expect((await session.holders())[0]?.lifetimeMs).toBe(usualMs)
    missing.ended(usageOf(2_000, 0))
    expect((await session.holders())[0]?.lifetimeMs).toBe(hourMs)
  })
})
