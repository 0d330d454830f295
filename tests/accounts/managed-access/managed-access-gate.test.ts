import { beforeEach, describe, expect, test } from 'vitest'
import { type GateEvent, ManagedAccessGate } from '../../../src/accounts/managed-access/managed-access-gate.ts'
import type { AuditRecord } from '../../../src/domain/audit.ts'
import type { ManagedAccessState } from '../../../src/domain/managed-access.ts'
import { ManualClock } from '../../gateway/manual-clock.ts'

const control = { provider: 'vendor', noteId: 'note-1', recordedAtMs: 1, recordedBy: 'cli', revokedAtMs: null }
const never = (): Promise<never> => new Promise(() => {})

let clock: ManualClock
let state: ManagedAccessState
let quotas: () => Promise<void>
let audit: () => Promise<void>
let append: () => Promise<void>
let asked: () => Promise<ManagedAccessState>
let appended: AuditRecord[]
let events: GateEvent[]
let changes: number
let proofs: number
let gate: ManagedAccessGate

beforeEach(() => {
  clock = new ManualClock()
  state = { switchedOn: true, controls: [control] }
  quotas = audit = append = () => Promise.resolve()
  asked = () => Promise.resolve(state)
  appended = []
  events = []
  changes = 0
  proofs = 0
  gate = new ManagedAccessGate({
    clock,
    proveQuotas: () => quotas(),
    store: {
      managedAccess: () => asked(),
      proveAudit: () => {
        proofs += 1
        return audit()
      },
      appendAudit: async (record) => {
        await append()
        appended.push(record)
        return { sequence: appended.length, hash: `hash ${appended.length}` }
      },
      readAudit: async (after) => [{ sequence: after + 1, accountId: null, entry: '{}', hash: `hash ${after + 1}` }],
    },
    onEvent: (event) => void events.push(event),
  })
})

const start = async (): Promise<void> => {
  const started = gate.start(() => void (changes += 1))
  await clock.advance(2_000)
  await started
}
const failing = (): Promise<never> => Promise.reject(new Error('made up'))

describe('managed access', () => {
  const bits = [0, 1] as const
  const combinations = bits.flatMap((on) =>
    bits.flatMap((resale) => bits.flatMap((quota) => bits.map((kept) => [on, resale, quota, kept] as const))),
  )
  test.each(combinations)(
    'switch %d, resale controls %d, quotas %d, audit %d: on where all four hold',
    async (...all) => {
      const [on, resale, quota, kept] = all
      state = { switchedOn: on === 1, controls: resale === 1 ? [control] : [{ ...control, revokedAtMs: 2 }] }
      if (quota === 0) quotas = failing
      if (kept === 0) audit = failing
      await start()
      expect(gate.isOn('vendor')).toBe(all.every((each) => each === 1))
      expect(gate.isOn('another')).toBe(false)
      await gate.close()
      expect(gate.isOn('vendor')).toBe(false)
    },
  )

  test.each([
    ['the operator switches it off', () => (state = { ...state, switchedOn: false }), 'switched_off'],
    ['the resale controls are revoked', () => (state = { ...state, controls: [] }), 'resale_controls'],
    ['a write to the quotas is lost', () => (quotas = failing), 'durable_quotas'],
    ['an event cannot be kept', () => (audit = failing), 'durable_audit'],
    ['the store does not answer', () => (asked = failing), 'store_silent'],
    ['the store hangs', () => (asked = never), 'store_silent'],
    ['a proof hangs', () => (quotas = never), 'store_silent'],
  ])('is off within a second where %s', async (_what, happen, reason) => {
    await start()
    for (const offsetMs of [0, 130, 260, 390]) {
      expect(gate.isOn('vendor')).toBe(true)
      const before = changes
      await clock.advance(offsetMs)
      happen()
      await clock.advance(1_000)
      expect(gate.isOn('vendor')).toBe(false)
      expect(changes).toBe(before + 1)
      expect(events.at(-1)).toEqual({ what: 'shut', reason })
      expect(appended.at(-1)?.event).toEqual({ type: 'managed.closed', reason })
      state = { switchedOn: true, controls: [control] }
      quotas = audit = () => Promise.resolve()
      asked = () => Promise.resolve(state)
      await clock.advance(20_000)
    }
    await gate.close()
  })

  test('revoking one provider leaves the others on', async () => {
    state = { ...state, controls: [control, { ...control, provider: 'another' }] }
    await start()
    expect([gate.isOn('vendor'), gate.isOn('another')]).toEqual([true, true])
    state = {
      ...state,
      controls: [
        { ...control, revokedAtMs: 3 },
        { ...control, provider: 'another' },
      ],
    }
    await clock.advance(1_000)
    expect([gate.isOn('vendor'), gate.isOn('another')]).toEqual([false, true])
    await gate.close()
  })

  test('a check that fails now and then keeps it shut until all have held for ten seconds', async () => {
    await start()
    quotas = failing
    await clock.advance(1_000)
    quotas = () => Promise.resolve()
    await clock.advance(9_000)
    expect(gate.isOn('vendor')).toBe(false)
    await clock.advance(2_500)
    expect(gate.isOn('vendor')).toBe(true)
    await gate.close()
  })

  test('it does not open before its opening is in the log', async () => {
    append = failing
    await start()
    await clock.advance(60_000)
    expect([gate.isOn('vendor'), changes, events]).toEqual([false, 0, []])
    append = () => Promise.resolve()
    await clock.advance(20_000)
    expect(gate.isOn('vendor')).toBe(true)
    expect(appended.map(({ actor, event }) => [actor, event])).toEqual([
      [{ kind: 'system' }, { type: 'managed.opened', reason: 'switched_on' }],
    ])
    await gate.close()
  })

  test('where the log fails it shuts all the same, and says that this is not in the log', async () => {
    await start()
    audit = append = failing
    await clock.advance(1_000)
    expect(gate.isOn('vendor')).toBe(false)
    expect(events.slice(-2)).toEqual([
      { what: 'shut', reason: 'durable_audit' },
      { what: 'unrecorded', reason: 'Error' },
    ])
    await gate.close()
  })

  test('nothing is proven while it is switched off, and nothing runs after the end', async () => {
    state = { ...state, switchedOn: false }
    await start()
    await clock.advance(5_000)
    expect(proofs).toBe(0)
    await gate.close()
    expect(clock.waiting).toBe(0)
  })
})
