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
    'managed access is on only if all four checks pass: switch %d, resale controls %d, quotas %d, audit %d',
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
    ['an event cannot be stored', () => (audit = failing), 'durable_audit'],
    ['the store does not answer', () => (asked = failing), 'store_silent'],
    ['the store hangs', () => (asked = never), 'store_silent'],
    ['a proof hangs', () => (quotas = never), 'store_silent'],
  ])('managed access is off within a second if %s', async (_what, happen, reason) => {
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

  test('a revocation for one provider does not affect the others', async () => {
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

  test('after a failed check, managed access stays off until all checks have passed for ten seconds', async () => {
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

  test('managed access does not start before its audit event is stored', async () => {
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

  test('if the audit log fails, managed access still ends, and the missing audit event is reported', async () => {
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

  test('no check runs while the switch is off, and nothing runs after closing', async () => {
    state = { ...state, switchedOn: false }
    await start()
    await clock.advance(5_000)
    expect(proofs).toBe(0)
    await gate.close()
    expect(clock.waiting).toBe(0)
  })
})
