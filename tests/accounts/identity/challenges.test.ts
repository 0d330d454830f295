import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { challengeLifeMs, mintChallenge, takeChallenge } from '../../../src/accounts/identity/challenges.ts'
import type { IdentityDeps } from '../../../src/accounts/identity/identity.ts'
import { systemRandom } from '../../../src/runtime/random.ts'
import { Secret } from '../../../src/runtime/secret.ts'
import { createStore, type Store } from '../../../src/storage/store.ts'
import { openEmptySqlite } from '../../empty-database.ts'

let folder: string
let store: Store
let deps: IdentityDeps
let nowMs = 1_795_000_000_000
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'svc-router-test-'))
  store = createStore(await openEmptySqlite(folder))
  deps = {
    store,
    clock: { nowMs: () => nowMs },
    random: systemRandom(),
    pepper: new Secret('made-up-pepper-of-tests'),
  }
})
afterEach(async () => {
  await store.close()
  rmSync(folder, { recursive: true })
})

test('a challenge is valid once, for its own purpose', async () => {
  const challenge = mintChallenge(deps, 'sign in')
  expect(challenge).toMatch(/^[\w-]+$/)
  expect(await takeChallenge(deps, 'register acc_1', challenge)).toBe(false)
  expect(await takeChallenge(deps, 'sign in', challenge)).toBe(true)
  expect(await takeChallenge(deps, 'sign in', challenge)).toBe(false)
})

test('a challenge expires after five minutes, and its expiry cannot be changed', async () => {
  const challenge = mintChallenge(deps, 'sign in')
  const text = Buffer.from(challenge, 'base64url').toString()
  const later = Buffer.from(text.replace(/^\d+/, (end) => String(Number(end) + 1))).toString('base64url')
  expect(await takeChallenge(deps, 'sign in', later)).toBe(false)
  nowMs += challengeLifeMs
  expect(await takeChallenge(deps, 'sign in', challenge)).toBe(false)
})

test.each(['', 'x', 'a.b.c', Buffer.from(`${Date.now()}.${'a'.repeat(43)}.${'b'.repeat(43)}`).toString('base64url')])(
  'an invalid challenge is rejected: %s',
  async (text) => expect(await takeChallenge(deps, 'sign in', text)).toBe(false),
)
