import { expect, test } from 'vitest'
import type { JsonObject } from '../../../src/domain/json.ts'
import { formatById } from '../../../src/formats/formats.ts'
import { bodyShape, JsonScan } from '../../../src/formats/json-scan.ts'
import { CacheSessions } from '../../../src/gateway/cache/cache-sessions.ts'
import { readState } from '../../../src/gateway/cache/session-state.ts'
import type { StoredCacheSession } from '../../../src/gateway/cache/session-store.ts'
import { KeyedDigest } from '../../../src/runtime/keyed-digest.ts'
import { SimulatedTime } from '../../simulation/simulated-time.ts'
import { someBackend } from '../routing/some-backend.ts'

const [usualMs, hourMs] = [300_000, 3_600_000]
const backend = someBackend('claude', { format: 'anthropic-messages' })

/** Sends the turns of one session; for each one, returns how long its backend holds the prompt. */
async function lifetimesOf(turns: readonly JsonObject[]): Promise<(number | undefined)[]> {
  const clock = new SimulatedTime()
  const saved: StoredCacheSession[] = []
  const store = {
    findCacheSession: () => Promise.resolve(undefined),
    saveCacheSessions: (sessions: readonly StoredCacheSession[]) => Promise.resolve(void saved.push(...sessions)),
  }
  const digest = new KeyedDigest(new Uint8Array(32))
  const sessions = new CacheSessions({ digest, clock, log: () => {}, store })
  const lifetimes: (number | undefined)[] = []
  for (const body of turns) {
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
    const turn = await sessions.begin({ accountId: 'acc_1', profile: 'p', request, conversation })
    turn!.answeredBy({ target: backend, startedMs: clock.monotonicMs() }, [backend], true)
    await sessions[Symbol.asyncDispose]()
    lifetimes.push(readState(saved.at(-1)!.state)?.[0]?.holders[0]?.lifetimeMs)
  }
  return lifetimes
}

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
