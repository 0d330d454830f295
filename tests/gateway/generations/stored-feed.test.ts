import { DatabaseSync } from 'node:sqlite'
import { expect, test } from 'vitest'
import { generationBinding } from '../../../src/domain/seal-bindings.ts'
import { AnswerFeed } from '../../../src/gateway/generations/answer-feed.ts'
import { StoredFeed } from '../../../src/gateway/generations/stored-feed.ts'
import { createSealer } from '../../../src/runtime/sealer.ts'
import { Secret } from '../../../src/runtime/secret.ts'
import { createGenerationStore } from '../../../src/storage/generation-store.ts'
import { openMigrated } from '../../../src/storage/sqlite/open-sqlite.ts'
import { signals } from '../../simulation/simulated-gateway.ts'
import { ManualClock } from '../manual-clock.ts'
import { collectingSink } from './collecting-sink.ts'

const none = (): void => {}
const random = (bytes: number): Uint8Array => new Uint8Array(bytes).fill(7)
const accountId = 'acc_1'
const requestId = 'req_1'

test('the stream of a background response whose process died before content ends with an error', async () => {
  const clock = new ManualClock()
  const database = new DatabaseSync(':memory:')
  database.function('unixepoch', { varargs: true }, () => clock.nowMs() / 1_000)
  const store = createGenerationStore(await openMigrated(() => database))
  const sealer = createSealer({ current: { id: 'k1', key: new Secret(random(32)) }, random })
  const nowMs = clock.nowMs()
  const named = { accountId, requestId, keyDigest: 'key', bodyDigest: 'body' }
  const times = { createdAtMs: nowMs, expiresAtMs: nowMs + 3_600_000 }
  await store.claim({ ...named, ...times, format: 'openai-responses', stream: true, isBackground: true })
  const head = JSON.stringify({ stream: true, upstream: undefined, simulated: false, retryCount: 0 })
  const sealed = sealer.seal(generationBinding(accountId, requestId, 0), 'keep-alive')
  await store.append({ accountId, requestId, number: 0, sealed, bytes: 10, head, hasContent: false })
  const stored = await store.read(accountId, requestId, 0)

  const feed = new AnswerFeed({ isStream: true, clock, brokenEnd: () => Buffer.from(', then an error') })
  const { sink, received } = collectingSink()
  const followed = feed.follow({ sink, signals })
  const held = { grow: none, [Symbol.dispose]: none }
  const reader = new StoredFeed({ store, sealer, clock, log: none, held }, feed, stored!.generation)
  const done = reader.run()
  await clock.advance(5_000)
  expect(received()).toBe('keep-alive')
  await clock.advance(10_000)
  await done
  expect(received()).toBe('keep-alive, then an error')
  expect(await followed).toBe('over')
})
