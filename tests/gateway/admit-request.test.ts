import { expect, test } from 'vitest'
import { ServiceError } from '../../src/domain/errors.ts'
import { FakeGateway } from './fake-gateway.ts'
import { settled } from './manual-clock.ts'

const body = { messages: [{ role: 'user', content: 'Hi' }] }

test('a request whose key became invalid while it waited is not admitted (contract 3.11)', async () => {
  const gateway = new FakeGateway(['openai-chat'])
  gateway.recheck = () => {
    throw new ServiceError('key_revoked')
  }
  await expect(gateway.answer('openai-chat', body)).rejects.toMatchObject({ code: 'key_revoked' })
  expect([gateway.admitted, gateway.settled, gateway.backends[0]!.requests]).toEqual([0, [], []])
})

test('a request is admitted within the limits that its key has by then (contract 3.13)', async () => {
  const gateway = new FakeGateway(['openai-chat'])
  gateway.recheck = (principal) => ({
    ...principal,
    limits: { profiles: new Set(['other']), rate: undefined, networks: undefined },
  })
  await expect(gateway.answer('openai-chat', body)).rejects.toMatchObject({ code: 'key_profile_not_allowed' })
  expect(gateway.admitted).toBe(0)
  const rate = { keyId: 'k', perMinute: 1 }
  gateway.recheck = (principal) => ({ ...principal, limits: { profiles: undefined, rate, networks: undefined } })
  void gateway.answer('openai-chat', body)
  await settled()
  expect([gateway.admitted, gateway.rate]).toEqual([1, rate])
  gateway.backends[0]!.head(400)
})

test('a request is admitted within the budgets that its key has by then (contract 46.1)', async () => {
  const gateway = new FakeGateway(['openai-chat'])
  const kind = { scope: 'account', subject: '', unit: 'usd', window: 'month', rolling: false } as const
  const budget = { ...kind, id: 'bud_1', accountId: 'acc_1', limit: 1, setBy: 'account', createdAtMs: 0 } as const
  gateway.recheck = (principal) => ({ ...principal, budgets: [budget] })
  await expect(gateway.answer('openai-chat', body)).rejects.toMatchObject({ code: 'budget_price_unknown' })
  expect(gateway.admitted).toBe(0)
})

test('the key is checked after the counters were read, however long that takes', async () => {
  const gateway = new FakeGateway(['openai-chat'])
  const reading = Promise.withResolvers<undefined>()
  gateway.prepare = () => reading.promise
  const answer = gateway.answer('openai-chat', body).catch((error: unknown) => error)
  await settled()
  gateway.recheck = () => {
    throw new ServiceError('key_revoked')
  }
  reading.resolve(undefined)
  expect(await answer).toMatchObject({ code: 'key_revoked' })
  expect(gateway.admitted).toBe(0)
})

test('a request whose counters cannot be read is not admitted, and may be sent again', async () => {
  const gateway = new FakeGateway(['openai-chat'])
  gateway.prepare = () => Promise.reject(new Error('the database does not answer'))
  await expect(gateway.answer('openai-chat', body)).rejects.toMatchObject({
    code: 'record_unavailable',
    facts: { retryAfterSeconds: 1 },
  })
  expect(gateway.admitted).toBe(0)
  expect(gateway.events).toContainEqual({ event: 'ledger_failing', reason: 'Error' })
})
