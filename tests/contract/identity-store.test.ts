import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { Account } from '../../src/domain/accounts.ts'
import type { AuditRecord } from '../../src/domain/audit.ts'
import type { Session, SignInProof } from '../../src/domain/identity.ts'
import { createStore, type Store } from '../../src/storage/store.ts'
import { enginesFor } from './engines.ts'

const account = (id: string): Account => ({ id, name: id, planId: 'free', suspended: false, createdAtMs: 1 })
const proof = (id: string, more: Partial<SignInProof> = {}): SignInProof => ({
  id,
  purpose: 'sign_in',
  address: 'a@example.com',
  accountId: null,
  createdAtMs: 1_000,
  expiresAtMs: 2_000,
  ...more,
})
const recordOf = (type: 'account.created' | 'email.added' | 'passkey.added'): AuditRecord => ({
  actor: { kind: 'system' },
  atMs: 1,
  event: type === 'account.created' ? { type, accountId: 'acc_1', planId: 'free' } : { type, accountId: 'acc_1' },
})
const accountCreated = recordOf('account.created')
const email = recordOf('email.added')
const passkeyAdded = recordOf('passkey.added')
const session = (id: string, more: Partial<Session> = {}): Session => ({
  id,
  accountId: 'acc_1',
  method: 'email',
  agent: 'Firefox on Linux',
  createdAtMs: 1,
  lastSeenAtMs: 1,
  expiresAtMs: 100,
  ...more,
})

describe.each(enginesFor('identities'))('identities on %s', (_, engine) => {
  let store: Store
  beforeAll(() => engine.start())
  afterAll(() => engine.stop())
  beforeEach(async () => {
    const open = await engine.fresh()
    store = createStore(await open())
    await store.addAccount(account('acc_1'), accountCreated)
    await store.addAccount(account('acc_2'), accountCreated)
    return () => store.close()
  })

  describe('addresses', () => {
    test('an account and its address are created together or not at all', async () => {
      expect(await store.addAccountWithEmail(account('acc_3'), 'a@example.com', accountCreated)).toBe(true)
      expect(await store.findEmail('a@example.com')).toEqual({
        address: 'a@example.com',
        accountId: 'acc_3',
        createdAtMs: 1,
      })
      expect(await store.addAccountWithEmail(account('acc_4'), 'a@example.com', accountCreated)).toBe(false)
      expect(await store.findAccount('acc_4')).toBeUndefined()
    })

    test('when two accounts claim one address at once, exactly one is created', async () => {
      const ids = ['acc_5', 'acc_6', 'acc_7', 'acc_8']
      const made = await Promise.all(
        ids.map((id) => store.addAccountWithEmail(account(id), 'b@example.com', accountCreated)),
      )
      expect(made.filter(Boolean).length).toBe(1)
      const found = await Promise.all(ids.map((id) => store.findAccount(id)))
      expect(found.filter((each) => each !== undefined).length).toBe(1)
    })

    test('an address belongs to one account, an account has a bounded number, and it removes only its own', async () => {
      const add = (address: string, accountId: string): Promise<boolean> =>
        store.addEmail({ address, accountId, createdAtMs: 5 }, 2, email)
      expect([await add('a@x', 'acc_1'), await add('b@x', 'acc_1'), await add('c@x', 'acc_1')]).toEqual([
        true,
        true,
        false,
      ])
      expect([await add('a@x', 'acc_2'), await store.removeEmail('acc_2', 'a@x', email)]).toEqual([false, false])
      expect(await store.removeEmail('acc_1', 'a@x', email)).toBe(true)
      expect((await store.listEmails('acc_1')).map(({ address }) => address)).toEqual(['b@x'])
    })
  })

  describe('proofs', () => {
    test('a correct code uses up a proof, and only one of many simultaneous tries succeeds', async () => {
      await store.addProof(proof('prf_1'), { code: 'right', link: 'link-1' }, 0)
      const tries = await Promise.all(Array.from({ length: 4 }, () => store.tryCode('prf_1', 'right', 5, 1_500)))
      expect(tries.filter((result) => result === 'used').length).toBe(1)
      expect(await store.useLink('link-1', 1_500)).toBeUndefined()
      expect(await store.findProofByLink('link-1')).toBeUndefined()
    })

    test('the limit of wrong codes holds for any number of simultaneous tries', async () => {
      await store.addProof(proof('prf_1'), { code: 'right', link: 'link-1' }, 0)
      const tries = await Promise.all(Array.from({ length: 12 }, () => store.tryCode('prf_1', 'wrong', 5, 1_500)))
      expect(tries.filter((result) => result === 'wrong').length).toBe(5)
      expect(await store.tryCode('prf_1', 'right', 5, 1_500)).toBe('refused')
    })

    test('a link uses up a proof once and before it expires; a proof without a code cannot be used with one', async () => {
      await store.addProof(proof('prf_1', { address: null, accountId: 'acc_1' }), { code: null, link: 'link-1' }, 0)
      expect(await store.tryCode('prf_1', '', 5, 1_500)).toBe('wrong')
      expect(await store.useLink('link-1', 2_000)).toBeUndefined()
      const uses = await Promise.all(Array.from({ length: 4 }, () => store.useLink('link-1', 1_999)))
      expect(uses.filter((used) => used !== undefined)).toEqual([proof('prf_1', { address: null, accountId: 'acc_1' })])
    })

    test('proofs are counted by address, network, and time, and deleted long after they expire', async () => {
      for (const [index, createdAtMs] of [1_000, 1_100, 1_200].entries())
        await store.addProof(
          proof(`prf_${index}`, { createdAtMs, expiresAtMs: createdAtMs + 1_000 }),
          { code: 'c', link: `l${index}`, network: 'n1' },
          0,
        )
      expect(await store.countProofs({ network: 'n1' }, 1_000)).toEqual({ count: 2, firstAtMs: 1_100 })
      expect(await store.countProofs({ network: 'n2' }, 0)).toEqual({ count: 0, firstAtMs: null })
      expect(await store.countProofs({ address: 'a@example.com' }, 1_000)).toEqual({ count: 2, firstAtMs: 1_100 })
      expect(await store.countProofs({ address: 'b@example.com' }, 0)).toEqual({ count: 0, firstAtMs: null })
      const both = { address: 'a@example.com', network: 'n1' }
      expect(await store.countProofs(both, 0)).toEqual({ count: 3, firstAtMs: 1_000 })
      expect(await store.countProofs({ ...both, network: 'n2' }, 0)).toEqual({ count: 0, firstAtMs: null })
      expect(await store.countProofs(both, 0, { id: 'prf_1', createdAtMs: 1_100 })).toMatchObject({ count: 2 })
      expect(await store.countProofs(both, 0, { id: 'prf_0', createdAtMs: 1_100 })).toMatchObject({ count: 1 })
      await store.addProof(proof('prf_9', { createdAtMs: 9_000 }), { code: 'c', link: 'l9' }, 2_150)
      expect(await store.findProof('prf_1')).toBeUndefined()
      expect(await store.findProof('prf_2')).toBeDefined()
    })
  })

  describe('passkeys', () => {
    const passkey = (id: string, accountId = 'acc_1') => ({
      id,
      accountId,
      name: 'Chrome on Linux',
      publicKey: 'a-key',
      counter: 0,
      transports: ['internal'],
      createdAtMs: 1,
      lastUsedAtMs: null,
    })

    test('passkeys are stored once, in a bounded number, and removed only by their own account', async () => {
      expect(await store.addPasskey(passkey('one'), 2, passkeyAdded)).toBe(true)
      expect(await store.addPasskey(passkey('one', 'acc_2'), 2, passkeyAdded)).toBe(false)
      expect(await store.addPasskey(passkey('two'), 2, passkeyAdded)).toBe(true)
      expect(await store.addPasskey(passkey('three'), 2, passkeyAdded)).toBe(false)
      await store.usePasskey('one', 7, 50)
      expect(await store.findPasskey('one')).toEqual({ ...passkey('one'), counter: 7, lastUsedAtMs: 50 })
      expect(await store.removePasskey('acc_2', 'one', passkeyAdded)).toBe(false)
      expect(await store.removePasskey('acc_1', 'one', passkeyAdded)).toBe(true)
      expect((await store.listPasskeys('acc_1')).map(({ id }) => id)).toEqual(['two'])
    })

    test('of many answers to one challenge, exactly one counts', async () => {
      const uses = await Promise.all(Array.from({ length: 5 }, () => store.useChallenge('digest', 100, 50)))
      expect(uses.filter(Boolean).length).toBe(1)
      expect(await store.useChallenge('another', 200, 150)).toBe(true)
    })
  })

  describe('sessions', () => {
    test('sessions are found by their digest, and end one by one or all at once, only for their own account', async () => {
      await store.addSession(session('ses_1'), 'd1', 10)
      await store.addSession(session('ses_2', { accountId: 'acc_2' }), 'd2', 10)
      expect(await store.findSession('d1')).toEqual(session('ses_1'))
      expect(await store.removeSession('acc_2', 'ses_1')).toBe(false)
      await store.removeSessions('acc_2')
      expect([await store.findSession('d2'), (await store.findSession('d1'))?.id]).toEqual([undefined, 'ses_1'])
      expect(await store.removeSession('acc_1', 'ses_1')).toBe(true)
    })

    test('a session beyond the limit ends the least recently used one', async () => {
      await store.addSession(session('ses_1', { lastSeenAtMs: 5 }), 'd1', 2)
      await store.addSession(session('ses_2', { lastSeenAtMs: 1 }), 'd2', 2)
      await store.touchSession('d2', 9)
      await store.addSession(session('ses_3', { lastSeenAtMs: 10 }), 'd3', 2)
      expect((await store.listSessions('acc_1')).map(({ id }) => id)).toEqual(['ses_3', 'ses_2'])
    })

    test('sessions do not make nodes reload every key', async () => {
      const before = await store.revision()
      await store.addSession(session('ses_1'), 'd1', 2)
      await store.touchSession('d1', 5)
      await store.addProof(proof('prf_1'), { code: 'c', link: 'l' }, 0)
      await store.tryCode('prf_1', 'c', 5, 1_500)
      await store.removeSessions('acc_1')
      expect(await store.revision()).toBe(before)
    })
  })
})
