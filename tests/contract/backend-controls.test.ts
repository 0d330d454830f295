import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { controlBackend, type BackendControlDeps } from '../../src/accounts/backends/backend-controls.ts'
import { markTicket } from '../../src/accounts/support/tickets.ts'
import { systemRandom } from '../../src/runtime/random.ts'
import { Secret } from '../../src/runtime/secret.ts'
import { createStore, type Store } from '../../src/storage/store.ts'
import { enginesFor } from './engines.ts'

const operator = { kind: 'operator', operatorId: 'opr_1' } as const

describe.each(enginesFor('backend controls'))('backend controls on %s', (_, engine) => {
  let store: Store
  let nowMs: number
  let deps: BackendControlDeps
  beforeAll(() => engine.start())
  afterAll(() => engine.stop())
  beforeEach(async () => {
    store = createStore(await (await engine.fresh())())
    nowMs = 1_000
    deps = {
      store,
      clock: { nowMs: () => nowMs },
      random: systemRandom(),
      pepper: new Secret('pepper'),
      actor: operator,
    }
    return () => store.close()
  })
  const events = async (): Promise<readonly unknown[]> =>
    (await store.listAudit({ limit: 100 })).map(({ actor, event }) => [actor, event]).toReversed()

  test('a hold lasts until it is removed once, with an audit event and a new revision', async () => {
    const before = await store.revision()
    await controlBackend(deps, { step: 'drained', backend: 'alpha', reason: 'maintenance' })
    const again = controlBackend(deps, { step: 'drained', backend: 'alpha', reason: 'cost' })
    await expect(again).rejects.toMatchObject({ code: 'backend_unchanged' })
    nowMs = 2_000
    await controlBackend(deps, { step: 'quarantined', backend: 'alpha', reason: 'credential' })
    expect(await store.listBackendControls()).toEqual([
      { backendId: 'alpha', kind: 'drained', atMs: 1_000, by: 'opr_1', reason: 'maintenance' },
      { backendId: 'alpha', kind: 'quarantined', atMs: 2_000, by: 'opr_1', reason: 'credential' },
    ])
    await controlBackend(deps, { step: 'undrained', backend: 'alpha' })
    await expect(controlBackend(deps, { step: 'undrained', backend: 'alpha' })).rejects.toMatchObject({
      code: 'backend_unchanged',
    })
    await controlBackend(deps, { step: 'released', backend: 'alpha' })
    nowMs = 3_000
    await controlBackend(deps, { step: 'released', backend: 'alpha' })
    expect(await store.listBackendControls()).toEqual([
      { backendId: 'alpha', kind: 'released', atMs: 3_000, by: 'opr_1', reason: null },
    ])
    expect((await store.revision()) - before).toBe(5)
    expect(await events()).toEqual([
      [operator, { type: 'backend.drained', backend: 'alpha', reason: 'maintenance' }],
      [operator, { type: 'backend.quarantined', backend: 'alpha', reason: 'credential' }],
      [operator, { type: 'backend.undrained', backend: 'alpha' }],
      [operator, { type: 'backend.released', backend: 'alpha' }],
      [operator, { type: 'backend.released', backend: 'alpha' }],
    ])
  })

  test('when two operators drain a backend at once, one succeeds and appends the only event', async () => {
    const order = { step: 'drained', backend: 'alpha', reason: 'asked' } as const
    const ends = await Promise.allSettled([1, 2, 3].map(() => controlBackend(deps, order)))
    expect(ends.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    expect(await events()).toHaveLength(1)
  })

  test('accounts and the service itself cannot set a hold, and a backend ID cannot contain free text', async () => {
    const actors = [{ kind: 'system' }, { kind: 'session', sessionId: 'ses_1', accountId: 'acc_1' }] as const
    for (const actor of actors)
      await expect(
        controlBackend({ ...deps, actor }, { step: 'drained', backend: 'alpha', reason: 'asked' }),
      ).rejects.toMatchObject({ code: 'operator_only' })
    await expect(
      controlBackend(deps, { step: 'drained', backend: 'a text of somebody', reason: 'asked' }),
    ).rejects.toMatchObject({ code: 'backend_invalid' })
    expect(await store.listBackendControls()).toEqual([])
    expect(await events()).toEqual([])
  })

  test('an operator closes and reopens a ticket, each time with an audit event', async () => {
    const ticket = {
      id: 'tic_1',
      accountId: null,
      replyTo: 'a@example.com',
      requestId: null,
      text: 'x',
      createdAtMs: 1,
    }
    await store.addTicket(ticket, 0, 10)
    expect(await store.findTicket('tic_1')).toEqual({ ...ticket, closedAtMs: null })
    expect(await markTicket({ ...deps, store }, 'tic_1', 'closed')).toMatchObject({
      closedAtMs: 1_000,
    })
    const tickets = { ...deps, store }
    await expect(markTicket(tickets, 'tic_1', 'closed')).rejects.toMatchObject({ code: 'ticket_unchanged' })
    await expect(markTicket(tickets, 'tic_2', 'closed')).rejects.toMatchObject({ code: 'ticket_unknown' })
    expect(await store.listTickets(10)).toEqual([{ ...ticket, closedAtMs: 1_000 }])
    expect(await store.countTickets()).toEqual({ open: 0, closed: 1 })
    await markTicket(tickets, 'tic_1', 'reopened')
    expect((await store.findTicket('tic_1'))?.closedAtMs).toBeNull()
    await expect(markTicket({ ...tickets, actor: { kind: 'system' } }, 'tic_1', 'closed')).rejects.toMatchObject({
      code: 'operator_only',
    })
    expect(await events()).toEqual([
      [operator, { type: 'ticket.closed', ticketId: 'tic_1' }],
      [operator, { type: 'ticket.reopened', ticketId: 'tic_1' }],
    ])
  })

  test('open tickets are found after any number of closed ones', async () => {
    const of = { accountId: null, replyTo: 'a@example.com', requestId: null, text: 'x', createdAtMs: 1 }
    for (const id of ['tic_1', 'tic_2', 'tic_3', 'tic_4', 'tic_5']) await store.addTicket({ ...of, id }, 0, 10)
    for (const id of ['tic_3', 'tic_4', 'tic_5']) await markTicket({ ...deps, store }, id, 'closed')
    const ids = async (...given: Parameters<Store['listTickets']>): Promise<string[]> =>
      (await store.listTickets(...given)).map(({ id }) => id)
    expect(await ids(2)).toEqual(['tic_5', 'tic_4'])
    expect(await ids(2, { state: 'open' })).toEqual(['tic_2', 'tic_1'])
    expect(await ids(2, { state: 'open', from: 1 })).toEqual(['tic_1'])
    expect(await ids(2, { state: 'closed', from: 1 })).toEqual(['tic_4', 'tic_3'])
    expect(await store.countTickets()).toEqual({ open: 2, closed: 3 })
  })
})
