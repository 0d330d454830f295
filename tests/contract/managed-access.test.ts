import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createAccount } from '../../src/accounts/accounts.ts'
import type { AccountsDeps } from '../../src/accounts/control-plane.ts'
import {
  maxRequestsPerAccount,
  recordResale,
  requestManagedAccess,
  reviewManagedRequest,
  revokeResale,
  switchManagedAccess,
  withdrawManagedRequest,
} from '../../src/accounts/managed-access/managed-access.ts'
import { defaultPlans } from '../../src/domain/plans.ts'
import { systemRandom } from '../../src/runtime/random.ts'
import { Secret } from '../../src/runtime/secret.ts'
import { createStore, type Store } from '../../src/storage/store.ts'
import { enginesFor } from './engines.ts'

const nowMs = 1_790_000_000_000

describe.each(enginesFor('managed access'))('managed access on %s', (_name, engine) => {
  let store: Store
  let other: Store
  /** Dependencies as an operator, and as the account's own user. */
  let deps: AccountsDeps<Store>
  let own: AccountsDeps<Store>
  let accountId: string

  beforeAll(() => engine.start())
  afterAll(() => engine.stop())
  beforeEach(async () => {
    const open = await engine.fresh()
    store = createStore(await open())
    other = createStore(await open())
    const parts = { store, clock: { nowMs: () => nowMs }, random: systemRandom(), pepper: new Secret('made up') }
    deps = { ...parts, actor: { kind: 'operator', operatorId: 'opr_1' } }
    accountId = (await createAccount(deps, 'Ada', 'free', defaultPlans)).id
    own = { ...parts, actor: { kind: 'session', sessionId: 'ses_1', accountId } }
  })
  afterEach(async () => {
    await store.close()
    await other.close()
  })

  const refusal = (code: string): object => expect.objectContaining({ name: 'AccountsError', code }) as object
  const types = async (): Promise<string[]> =>
    (await store.listAudit({ limit: 100 })).map(({ event }) => event.type).toReversed()

  test('the switch keeps its last position, and every change appends an audit event', async () => {
    expect((await store.managedAccess()).switchedOn).toBe(false)
    await switchManagedAccess(deps, true)
    await expect(switchManagedAccess(deps, true)).rejects.toEqual(refusal('managed_unchanged'))
    expect((await other.managedAccess()).switchedOn).toBe(true)
    await switchManagedAccess(deps, false)
    expect(await types()).toEqual(['account.created', 'managed.switched_on', 'managed.switched_off'])
  })

  test('resale controls are recorded with who, when, and where, revoked, and recorded again', async () => {
    await recordResale(deps, 'vendor', 'CONTRACT-17')
    await expect(recordResale(deps, 'vendor', 'CONTRACT-18')).rejects.toEqual(refusal('resale_already_recorded'))
    await expect(revokeResale(deps, 'another')).rejects.toEqual(refusal('resale_unknown'))
    const control = { provider: 'vendor', noteId: 'CONTRACT-17', recordedAtMs: nowMs, recordedBy: 'opr_1' }
    expect((await other.managedAccess()).controls).toEqual([{ ...control, revokedAtMs: null }])
    await revokeResale(deps, 'vendor')
    expect((await other.managedAccess()).controls).toEqual([{ ...control, revokedAtMs: nowMs }])
    await recordResale(deps, 'vendor', 'CONTRACT-19')
    expect((await other.managedAccess()).controls).toEqual([{ ...control, noteId: 'CONTRACT-19', revokedAtMs: null }])
  })

  test.each(['', 'two words', 'sk-madeup0madeup', 'AKIAMADEUP', 'x'.repeat(41), 'a@b.example'])(
    'a note is referenced by an ID, never by text or a credential: %j',
    async (note) => {
      await expect(recordResale(deps, 'vendor', note)).rejects.toEqual(refusal('note_invalid'))
    },
  )

  test('of many simultaneous requests of one account from two places, one is stored', async () => {
    const results = await Promise.allSettled(
      Array.from({ length: 10 }, (_, index) =>
        requestManagedAccess({ ...own, store: index % 2 === 0 ? store : other }, accountId),
      ),
    )
    expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    expect(await store.listManagedRequests({ limit: 10, accountId })).toHaveLength(1)
    expect((await types()).filter((type) => type === 'managed.requested')).toHaveLength(1)
  })

  test('an approved request grants access until it is withdrawn or rejected, and every step appends one audit event', async () => {
    const { id } = await requestManagedAccess(own, accountId)
    expect(await store.hasManagedAccess(accountId)).toBe(false)
    const outcomes = await Promise.allSettled(
      [store, other, store].map((place) => reviewManagedRequest({ ...deps, store: place }, id, 'approved')),
    )
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    expect(await other.hasManagedAccess(accountId)).toBe(true)
    await expect(requestManagedAccess(own, accountId)).rejects.toEqual(refusal('managed_request_open'))
    await withdrawManagedRequest(own, accountId, id)
    expect(await other.hasManagedAccess(accountId)).toBe(false)
    await expect(reviewManagedRequest(deps, id, 'approved')).rejects.toEqual(refusal('managed_request_decided'))
    await expect(withdrawManagedRequest(own, accountId, id)).rejects.toEqual(refusal('managed_request_decided'))
    const next = await requestManagedAccess(own, accountId)
    await reviewManagedRequest(deps, next.id, 'approved')
    await reviewManagedRequest(deps, next.id, 'rejected')
    expect(await other.hasManagedAccess(accountId)).toBe(false)
    expect((await types()).slice(1)).toEqual([
      'managed.requested',
      'managed.approved',
      'managed.withdrawn',
      'managed.requested',
      'managed.approved',
      'managed.rejected',
    ])
  })

  test('only an operator decides, and an account can end only its own access', async () => {
    const { id } = await requestManagedAccess(own, accountId)
    for (const actor of [own.actor, { kind: 'system' } as const]) {
      const asking = { ...deps, actor }
      await expect(reviewManagedRequest(asking, id, 'approved')).rejects.toEqual(refusal('operator_only'))
      await expect(switchManagedAccess(asking, true)).rejects.toEqual(refusal('operator_only'))
      await expect(recordResale(asking, 'vendor', 'N-1')).rejects.toEqual(refusal('operator_only'))
      await expect(revokeResale(asking, 'vendor')).rejects.toEqual(refusal('operator_only'))
    }
    await expect(withdrawManagedRequest(own, 'acc_other', id)).rejects.toEqual(refusal('managed_request_unknown'))
    await expect(requestManagedAccess(own, 'acc_other')).rejects.toEqual(refusal('account_unknown'))
    expect((await store.findManagedRequest(id))?.state).toBe('requested')
  })

  test('the number of requests of one account is limited', async () => {
    for (let count = 0; count < maxRequestsPerAccount; count++) {
      const { id } = await requestManagedAccess(own, accountId)
      await withdrawManagedRequest(own, accountId, id)
    }
    await expect(requestManagedAccess(own, accountId)).rejects.toEqual(refusal('managed_request_open'))
  })
})
