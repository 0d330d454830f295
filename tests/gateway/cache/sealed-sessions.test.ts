import { expect, test } from 'vitest'
import { sealedSessions } from '../../../src/gateway/cache/sealed-sessions.ts'
import type { CacheSessionStore, StoredCacheSession } from '../../../src/gateway/cache/session-store.ts'
import { systemRandom } from '../../../src/runtime/random.ts'
import { createSealer } from '../../../src/runtime/sealer.ts'
import { Secret } from '../../../src/runtime/secret.ts'

const row: StoredCacheSession = {
  accountId: 'acc_1',
  session: 'named:one p',
  state: '[2,["checksums"]]',
  updatedMs: 1,
  expiresMs: 2,
}

function sealerWith(fill: number) {
  const key = { id: `k${fill}`, key: new Secret(new Uint8Array(32).fill(fill)) }
  return createSealer({ current: key, random: systemRandom() })
}

/** A store whose only row can be replaced. */
function storeOf(): CacheSessionStore & { row: StoredCacheSession | undefined } {
  return {
    row: undefined,
    async findCacheSession() {
      return await Promise.resolve(this.row)
    },
    async saveCacheSessions([first]) {
      this.row = first
      await Promise.resolve()
    },
  }
}

test('a session is stored encrypted, and found again', async () => {
  const store = storeOf()
  const sealed = sealedSessions(store, sealerWith(1))
  expect(await sealed.findCacheSession(row.accountId, row.session)).toBeUndefined()
  await sealed.saveCacheSessions([row])
  expect(store.row?.state).not.toContain('checksums')
  expect(await sealed.findCacheSession(row.accountId, row.session)).toEqual(row)
})

test.each([
  ['another session', { session: 'named:two p' }],
  ['another account', { accountId: 'acc_2' }],
  ['a state that was not encrypted', { state: row.state }],
])('a row counts as absent if it is that of %s', async (_, changes) => {
  const store = storeOf()
  const sealed = sealedSessions(store, sealerWith(1))
  await sealed.saveCacheSessions([row])
  store.row = { ...store.row!, ...changes }
  expect(await sealed.findCacheSession(row.accountId, row.session)).toBeUndefined()
})

test('a row counts as absent after the key changed', async () => {
  const store = storeOf()
  await sealedSessions(store, sealerWith(1)).saveCacheSessions([row])
  expect(await sealedSessions(store, sealerWith(2)).findCacheSession(row.accountId, row.session)).toBeUndefined()
})
