import { createHmac } from 'node:crypto'
import { expect, test } from 'vitest'
import { signatureLine, writeAlertEvent, writeTestEvent } from '../../../src/accounts/alerts/alert-message.ts'
import { webhookEvents } from '../../../src/api-docs/webhook-events.ts'
import { Secret } from '../../../src/runtime/secret.ts'
import { someBudget } from '../../some-budget.ts'

type Message = Readonly<Record<string, unknown>>
interface Described {
  readonly properties: Readonly<Record<string, { readonly properties?: object }>>
  readonly required: readonly string[]
}

test('a signature covers the time of the attempt and the body', () => {
  const key = 'made-up-secret-of-the-webhook'
  const line = (nowMs: number) => signatureLine([new Secret(key)], '{"id":"1"}', nowMs)
  const mac = createHmac('sha256', key).update('1800000000.{"id":"1"}').digest('hex')
  expect(line(1_800_000_000_900)).toBe(`x-svc-router-signature: t=1800000000,v1=${mac}`)
  expect(line(1_800_000_001_000)).not.toContain(mac)
})

test('while a secret is replaced, both sign', () => {
  const line = signatureLine([new Secret('new'), new Secret('old')], 'body', 1_800_000_000_000)
  const mac = (key: string) => createHmac('sha256', key).update('1800000000.body').digest('hex')
  expect(line).toBe(`x-svc-router-signature: t=1800000000,v1=${mac('new')},v1=${mac('old')}`)
})

test('the API document describes every field of a message, and no other', () => {
  const { post } = webhookEvents['budgetAlert'] as {
    post: { requestBody: { content: { 'application/json': { schema: Described } } } }
  }
  const described = post.requestBody.content['application/json'].schema
  const state = {
    budget: someBudget({ limit: 20_000_000_000, setBy: 'operator' }),
    spent: 16_400_000_000,
    held: 0,
    left: 3_600_000_000,
    resetsAtMs: Date.UTC(2027, 1, 1),
  } as const
  const ofScope = (scope: 'account' | 'key' | 'profile', subject: string) => {
    const changed = { ...state, budget: { ...state.budget, scope, subject } }
    return JSON.parse(writeAlertEvent({ state: changed, threshold: 80, windowMs: 1 }, 'https://x', 1)) as Message
  }
  const alert = ofScope('account', '')
  const budgets = [alert, ofScope('key', 'key_1'), ofScope('profile', 'p')].map(({ budget }) => budget as object)
  const tested = JSON.parse(writeTestEvent('evt_1', 'acc_1', 'https://x', 1)) as Message
  const names = new Set([...Object.keys(alert), ...Object.keys(tested)])
  expect([...names].toSorted()).toEqual(Object.keys(described.properties).toSorted())
  const ofBudgets = new Set(budgets.flatMap((budget) => Object.keys(budget)))
  expect([...ofBudgets].toSorted()).toEqual(Object.keys(described.properties['budget']!.properties!).toSorted())
  for (const message of [alert, tested]) for (const name of described.required) expect(message).toHaveProperty(name)
})
