import { expect, test } from 'vitest'
import type { Seen } from './clients.ts'
import { findRefusedAgain, findViolations, type Records, undeliveredCharged } from './records.ts'

const limits = new Map([['acc', { perMinute: 2, perMonth: 3 }]])

function row(id: string, admittedAtMs: number, number: number, charged = 1): Records['rows'][number] {
  return { id, accountId: 'acc', admittedAtMs, number, state: 'done', charged }
}

function seen(id: string, sentMs: number, changes: Partial<Seen> = {}): Seen {
  const facts = { accountId: 'acc', keyId: 'key', code: '', isDelivered: true, retryAfter: 0 }
  return { ...facts, id, sentMs, gotMs: sentMs + 10, status: 200, ...changes }
}

const refused = { status: 429, isDelivered: false, retryAfter: 5 }
const unknown = { status: 0, isDelivered: false }
const rejected = { status: 401, isDelivered: false, code: 'key_revoked' }

test('the drill finds nothing in records that keep every promise', () => {
  const rows = [row('a', 0, 1), row('b', 10, 2), row('c', 60_000, 3)]
  const answers = [seen('a', 0), seen('b', 5), seen('x', 20, refused), seen('c', 60_100)]
  const found = findViolations({ rows, used: new Map([['acc', 3]]) }, { seen: answers, limits, revocations: new Map() })
  expect(Object.values(found).flat()).toEqual([])
  expect(findRefusedAgain(answers)).toEqual({ waits: 1, strict: [], afterUnknown: [] })
  expect(undeliveredCharged({ rows, used: new Map() }, answers)).toEqual([])
})

test('the drill finds each kind of broken promise', () => {
  const rows = [row('a', 0, 1), row('b', 10, 2), row('c', 59_999, 3), row('d', 200_000, 5), row('e', 300_000, 6, 0)]
  const answers = [
    seen('a', 0),
    seen('b', 5),
    seen('c', 59_900),
    seen('c', 59_950),
    seen('e', 300_000),
    seen('f', 400_000, rejected),
    seen('g', 500_000, { keyId: 'old' }),
  ]
  const revocations = new Map([['old', { startedMs: 490_000, confirmedMs: 493_000 }]])
  const found = findViolations({ rows, used: new Map([['acc', 5]]) }, { seen: answers, limits, revocations })
  for (const [promise, examples] of Object.entries(found)) expect(examples, promise).not.toEqual([])
  expect(undeliveredCharged({ rows, used: new Map() }, answers).map(({ id }) => id)).toEqual(['d'])
  const waits = [
    seen('a', 0, refused),
    seen('b', 6_000, refused),
    seen('c', 12_000, unknown),
    seen('d', 13_000, refused),
  ]
  const again = findRefusedAgain(waits)
  expect(again.strict).toHaveLength(1)
  expect(again.afterUnknown).toHaveLength(1)
})
