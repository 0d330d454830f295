import { expect, test } from 'vitest'
import type { Evidence } from './service/evidence.ts'
import { accessInvariants } from './service/invariants/access.ts'

const revoked = accessInvariants.find(({ id }) => id === 'I11')!

/** What I11 says of a call at a time, whose key was revoked after 100 ms, if its process was stopped for 8 s. */
function judged(callMs: number, pausedMs: number): readonly string[] {
  const keys = [{ id: 'key_1', key: 'secret' }]
  const evidence = {
    world: {
      template: { accounts: [{ id: 'acc_1', keys }] },
      exchanges: [{ number: 0, plan: { account: 0, key: 'secret' } }],
      changes: [{ action: { do: 'revoke', account: 0, key: 0 }, startedMs: 98, ackedMs: 100, isUndo: false }],
      pauses: [{ atMs: pausedMs, forMs: 8_000 }],
      outages: [],
      crashes: [],
      restarts: [],
    },
    admitted: new Map(),
    rows: new Map(),
    calls: [{ number: 1, request: 0, atMs: callMs }],
  } as unknown as Evidence
  return [...revoked.check(evidence)]
}

test('a call that was about to be sent when its process was stopped may be sent when it goes on, and none later', () => {
  expect(judged(8_106, 105)).toEqual([])
  expect(judged(8_200, 105)).toEqual(['call 1 began 8100 ms after revoke'])
  // Nobody had a reason to trust the key when the process was stopped.
  expect(judged(15_001, 7_000)).toEqual(['call 1 began 14901 ms after revoke'])
})
