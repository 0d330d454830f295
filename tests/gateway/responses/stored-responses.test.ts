import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Conversation } from '../../../src/domain/conversation.ts'
import type { ServiceEvent } from '../../../src/domain/events.ts'
import type { JsonObject } from '../../../src/domain/json.ts'
import { formatById } from '../../../src/formats/formats.ts'
import { bodyShape, JsonScan } from '../../../src/formats/json-scan.ts'
import { readRequest } from '../../../src/formats/openai-responses/read-request.ts'
import type { ModelRequest } from '../../../src/gateway/ports.ts'
import { Conversations } from '../../../src/gateway/responses/conversations.ts'
import type { ResponseStore } from '../../../src/gateway/responses/response-store.ts'
import { StoredResponses, type StoredResponsesDeps } from '../../../src/gateway/responses/stored-responses.ts'
import { systemRandom } from '../../../src/runtime/random.ts'
import { createSealer } from '../../../src/runtime/sealer.ts'
import { Secret } from '../../../src/runtime/secret.ts'
import { createConversationStore } from '../../../src/storage/conversation-store.ts'
import { createResponseStore } from '../../../src/storage/response-store.ts'
import type { ResponseList } from '../../../src/storage/responses.ts'
import { startResponseSweep } from '../../../src/storage/sweeps/response-sweep.ts'
import { openEmptySqlite } from '../../empty-database.ts'
import { ManualClock, settled } from '../manual-clock.ts'

const dayMs = 86_400_000
const account = 'acc_1'
const random = systemRandom()
const keyOf = (id: string) => ({ id, key: new Secret<Uint8Array>(random(32)) })
const current = keyOf('k1')

let folder: string
let db: Awaited<ReturnType<typeof openEmptySqlite>>
let store: ResponseList
let clock: ManualClock
let events: ServiceEvent[]

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'svc-router-test-'))
  db = await openEmptySqlite(folder)
  store = createResponseStore(db)
  clock = new ManualClock()
  events = []
})
afterEach(async () => {
  await store.close()
  rmSync(folder, { recursive: true })
})

function storedResponses(changes: { store?: ResponseStore; retentionMs?: number; key?: typeof current } = {}) {
  const { key = current, ...rest } = changes
  const sealer = createSealer({ current: key, random })
  const log = (event: ServiceEvent): void => void events.push(event)
  return withConversations({ store, sealer, clock, log, retentionMs: 30 * dayMs, maxBytes: 1_000_000, ...rest })
}

function withConversations(parts: Omit<StoredResponsesDeps, 'conversations' | 'formats'>): StoredResponses {
  const mintId = (): string => 'conv_0123456789'
  const conversations = new Conversations({ ...parts, store: createConversationStore(db), mintId })
  return new StoredResponses({ ...parts, formats: formatById, conversations })
}

let count = 0
function requestOf(body: JsonObject): { request: ModelRequest; conversation: Conversation } {
  const bytes = Buffer.from(JSON.stringify({ model: 'p', ...body }))
  const scan = new JsonScan(bodyShape)
  scan.push(bytes)
  const parsed = JSON.parse(bytes.toString()) as JsonObject
  const id = `req_${String((count += 1)).padStart(24, '0')}`
  const request = {
    id,
    format: 'openai-responses',
    bytes,
    members: scan.members(bytes),
    body: parsed,
    timeoutMs: undefined,
  } as const
  return { request, conversation: readRequest(parsed) }
}

const answerItem = {
  type: 'message',
  id: 'msg_answer',
  role: 'assistant',
  content: [{ type: 'output_text', text: 'Yes.' }],
}

/** Stores one answer; returns its ID, or undefined if it was not stored. */
async function save(stored: StoredResponses, body: JsonObject = { input: 'Hello.' }): Promise<string | undefined> {
  const { request, conversation } = requestOf(body)
  const keeping = stored.persister(account, request, conversation)
  if (keeping === undefined) return undefined
  const id = request.id.replace('req_', 'resp_')
  const changes = await keeping.persist({ id, status: 'completed', output: [answerItem] })
  return changes === undefined ? id : undefined
}

const continueFrom = (stored: StoredResponses, id: string): Promise<unknown> => {
  const { request, conversation } = requestOf({ input: 'On.', previous_response_id: id })
  return stored.resolve(account, request, conversation)
}

describe('expiry', () => {
  test('an answer is available until the last millisecond of its retention and never after, swept or not', async () => {
    const stored = storedResponses()
    const id = (await save(stored))!
    await clock.advance(30 * dayMs - 1)
    expect(await stored.find(account, id)).toMatchObject({ id })
    await continueFrom(stored, id)
    await clock.advance(1)
    await expect(stored.find(account, id)).rejects.toMatchObject({ code: 'response_not_found' })
    await expect(stored.inputOf(account, id)).rejects.toMatchObject({ code: 'response_not_found' })
    await expect(stored.remove(account, id)).rejects.toMatchObject({ code: 'response_not_found' })
    await expect(continueFrom(stored, id)).rejects.toMatchObject({ code: 'previous_response_not_found' })
    const { request, conversation } = requestOf({ input: [{ type: 'item_reference', id: 'msg_answer' }] })
    await expect(stored.resolve(account, request, conversation)).rejects.toMatchObject({
      code: 'item_not_found',
    })
  })

  test('the sweep deletes only what has expired', async () => {
    const stored = storedResponses()
    const old = (await save(stored))!
    await clock.advance(20 * dayMs)
    const recent = (await save(stored))!
    const end = startResponseSweep(store, {
      retentionMs: 30 * dayMs,
      clock,
      onFailed: (error) => expect.fail(String(error)),
    })
    await clock.advance(11 * dayMs)
    await expect.poll(() => store.find(account, old, 0)).toBeUndefined()
    expect(await store.find(account, recent, 0)).toBeDefined()
    end()
  })

  test('a shorter retention applies immediately, and a retention of 0 to everything', async () => {
    const id = (await save(storedResponses()))!
    await clock.advance(2 * dayMs)
    await expect(storedResponses({ retentionMs: dayMs }).find(account, id)).rejects.toMatchObject({
      code: 'response_not_found',
    })
    expect(await save(storedResponses({ retentionMs: 0 }))).toBeUndefined()
    const end = startResponseSweep(store, { retentionMs: 0, clock, onFailed: (error) => expect.fail(String(error)) })
    await clock.advance(200)
    await expect.poll(() => store.find(account, id, 0)).toBeUndefined()
    end()
  })
})

describe('an unavailable store', () => {
  test('an answer that is not saved in time reports that it is not stored, and does not appear later', async () => {
    let finish = (): void => {}
    const removed: boolean[] = []
    const slow: ResponseStore = {
      ...store,
      remove: async (accountId, id, sinceMs) => {
        const isGone = await store.remove(accountId, id, sinceMs)
        removed.push(isGone)
        return isGone
      },
      save: (response, digests) =>
        new Promise((resolve, reject) => {
          finish = () => void store.save(response, digests).then(resolve, reject)
        }),
    }
    const kept = save(storedResponses({ store: slow }))
    await settled()
    await clock.advance(5_000)
    expect(await kept).toBeUndefined()
    expect(events).toEqual([{ event: 'store_failing', reason: 'timeout' }])
    finish()
    const id = `resp_${String(count).padStart(24, '0')}`
    await expect.poll(() => removed).toEqual([true])
    expect(await store.find(account, id, 0)).toBeUndefined()
    expect(clock.waiting).toBe(0)
  })

  test('a failed read is a 503 that can be retried', async () => {
    const broken: ResponseStore = {
      ...store,
      find: () => Promise.reject(new Error('unavailable')),
      chain: () => Promise.reject(new Error('unavailable')),
    }
    const stored = storedResponses({ store: broken })
    const id = 'resp_000000000000000000000000'
    await expect(stored.find(account, id)).rejects.toMatchObject({ code: 'store_unavailable', status: 503 })
    await expect(continueFrom(stored, id)).rejects.toMatchObject({ code: 'store_unavailable' })
  })
})

describe('encrypted answers', () => {
  test('an answer can be decrypted with the previous key, and is not found once its key was removed', async () => {
    const id = (await save(storedResponses()))!
    const rotated = createSealer({ current: keyOf('k2'), previous: current, random })
    const log = (event: ServiceEvent): void => void events.push(event)
    const parts = { store, clock, log, retentionMs: 30 * dayMs, maxBytes: 1_000_000 }
    expect(await withConversations({ ...parts, sealer: rotated }).find(account, id)).toMatchObject({ id })
    await expect(storedResponses({ key: keyOf('k3') }).find(account, id)).rejects.toMatchObject({
      code: 'response_not_found',
    })
    expect(events).toEqual([{ event: 'stored_text_unreadable', reason: 'unknown_key' }])
  })
})

const rolesOf = ({ body }: ModelRequest): unknown[] => (body['input'] as JsonObject[]).map(({ role }) => role)

describe('a chain of answers', () => {
  test('it has at most a thousand answers, and the error says what to do', async () => {
    const chained: ResponseStore = {
      ...store,
      chain: async (accountId, id, sinceMs, maxLinks) => {
        const [turn] = await store.chain(accountId, id, sinceMs, maxLinks)
        return turn === undefined ? [] : [{ ...turn, links: 1_000 }]
      },
    }
    const id = (await save(storedResponses()))!
    await expect(continueFrom(storedResponses({ store: chained }), id)).rejects.toMatchObject({
      code: 'invalid_request',
      facts: { param: 'previous_response_id' },
    })
  })

  test('an item that the request refers to again is sent once', async () => {
    const stored = storedResponses()
    const id = (await save(stored))!
    const again = { type: 'item_reference', id: 'msg_answer' }
    const { request, conversation } = requestOf({
      previous_response_id: id,
      input: [again, again, 'On.'].map((item) =>
        typeof item === 'string' ? { type: 'message', role: 'user', content: item } : item,
      ),
    })
    const continued = await stored.resolve(account, request, conversation)
    expect(rolesOf(continued.request)).toEqual(['user', 'assistant', 'user'])
    expect(continued.resolved.own).toHaveLength(1)
    const alone = requestOf({ input: [again, again] })
    const { request: resolved } = await stored.resolve(account, alone.request, alone.conversation)
    expect(rolesOf(resolved)).toEqual(['assistant'])
  })

  test('it refers to at most a thousand items', async () => {
    const input = Array.from({ length: 1_001 }, (_, n) => ({ type: 'item_reference', id: `msg_${n}` }))
    const { request, conversation } = requestOf({ input })
    await expect(storedResponses().resolve(account, request, conversation)).rejects.toMatchObject({
      code: 'invalid_request',
      facts: { param: 'input' },
    })
  })
})
