import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Kysely } from 'kysely'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { RequestWork } from '../../../src/gateway/auth/unadmitted-work.ts'
import { Conversations } from '../../../src/gateway/responses/conversations.ts'
import { systemRandom } from '../../../src/runtime/random.ts'
import { createSealer } from '../../../src/runtime/sealer.ts'
import { Secret } from '../../../src/runtime/secret.ts'
import { createConversationStore } from '../../../src/storage/conversation-store.ts'
import type { Tables } from '../../../src/storage/schema/schema.ts'
import { openEmptySqlite } from '../../empty-database.ts'
import { ManualClock } from '../manual-clock.ts'

let folder: string
let db: Kysely<Tables>

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'svc-router-test-'))
  db = await openEmptySqlite(folder)
})
afterEach(async () => {
  await db.destroy()
  rmSync(folder, { recursive: true })
})

function open({ maxBytes = 1_000_000, maxBytesOfAccount = 50_000_000 } = {}): Conversations {
  const random = systemRandom()
  let made = 0
  return new Conversations({
    store: createConversationStore(db, maxBytesOfAccount),
    sealer: createSealer({ current: { id: 'k1', key: new Secret<Uint8Array>(random(32)) }, random }),
    clock: new ManualClock(),
    log: () => {},
    mintId: () => `conv_${String((made += 1)).padStart(10, '0')}`,
    retentionMs: 86_400_000,
    maxBytes,
  })
}

const itemsFrom = (first: number, count: number, content = 'x') =>
  Array.from({ length: count }, (_, index) => ({ id: `msg_${first + index}`, type: 'message', role: 'user', content }))

test('a conversation has at most 2,000 items, whether created with it or appended by a turn, and the error says so', async () => {
  const conversations = open()
  const { id } = (await conversations.create('acc_1', [], {})) as { id: string }
  await conversations.add('acc_1', id, itemsFrom(0, 1_999))
  expect(await conversations.append('acc_1', id, itemsFrom(1_999, 2))).toBe('full')
  await conversations.add('acc_1', id, itemsFrom(1_999, 1))
  const refused = { code: 'invalid_request', facts: { param: 'items' } }
  await expect(conversations.add('acc_1', id, itemsFrom(2_000, 1))).rejects.toMatchObject(refused)
  expect(await conversations.itemsOf('acc_1', id)).toHaveLength(2_000)
})

test('an account without storage space can neither create a conversation nor add to one', async () => {
  const conversations = open({ maxBytesOfAccount: 20_000 })
  const { id } = (await conversations.create('acc_1', [], {})) as { id: string }
  const refused = { code: 'invalid_request', facts: { param: 'items' } }
  await expect(conversations.add('acc_1', id, itemsFrom(0, 1, 'x'.repeat(20_000)))).rejects.toMatchObject(refused)
  let created = 1
  const fill = async (): Promise<void> => {
    for (; created < 100; created += 1) await conversations.create('acc_1', [], { k: 'v'.repeat(512) })
  }
  await expect(fill()).rejects.toMatchObject(refused)
  expect(created).toBeGreaterThan(5)
  expect(created).toBeLessThan(20)
})

test('reading a conversation is charged to the work of its request', async () => {
  const conversations = open()
  const { id } = (await conversations.create('acc_1', itemsFrom(0, 10, 'x'.repeat(1_000)), {})) as { id: string }
  let spent = 0
  const work = new RequestWork({ spend: (_accountId, bytes) => void (spent += bytes) }, 'acc_1')
  await conversations.itemsOf('acc_1', id, work)
  expect(spent).toBeGreaterThan(10_000)
  spent = 0
  await conversations.list('acc_1', id, { order: 'asc', limit: 5, after: undefined }, work)
  expect(spent).toBeGreaterThan(5_000)
  spent = 0
  await conversations.findItem('acc_1', id, 'msg_3', work)
  expect(spent).toBeGreaterThan(1_000)
})
