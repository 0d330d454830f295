import { expect, test } from 'vitest'
import type { UsageSignals } from '../../src/domain/account-meter.ts'
import { defaultPlans } from '../../src/domain/plans.ts'
import type { Admission, Ledger } from '../../src/gateway/ports.ts'
import { observeKeyStore, observeLedger } from '../../src/metrics/observed-ledger.ts'
import { ServiceMetrics } from '../../src/metrics/service-metrics.ts'
import { systemClock } from '../../src/runtime/clock.ts'
import { requestOpening as opening } from '../request-opening.ts'
import { seriesOf } from './series.ts'

const plan = defaultPlans[0]!
/** A ledger whose admission is what the test says. */
function ledgerWith(admission: Partial<Admission>): Ledger {
  const whole: Admission = {
    signals: () => ({}) as UsageSignals,
    durable: () => undefined,
    deliver: () => {},
    settle: () => {},
    ...admission,
  }
  return { admit: () => whole, signals: () => ({}) as UsageSignals }
}

function observed(admission: Partial<Admission> = {}) {
  const metrics = new ServiceMetrics({ version: '1', profiles: ['svc-router/frontier'], backends: [] })
  const ledger = observeLedger(ledgerWith(admission), metrics, systemClock())
  const uncounted = async (): Promise<number | undefined> =>
    (await seriesOf(metrics)).get('svc_router_delivered_uncounted_total')
  return { metrics, ledger, uncounted }
}

const charged = { charged: 1, attempts: [], totalMs: 1 }

test('a ledger that reads before it decides is asked to, and one that does not is not', async () => {
  const { metrics } = observed()
  const asked: unknown[] = []
  const ledger = {
    ...ledgerWith({}),
    prepare: async (...of: unknown[]): Promise<void> => void asked.push(of),
  }
  await observeLedger(ledger, metrics, systemClock()).prepare?.('acc_1', true)
  expect(asked).toEqual([['acc_1', true]])
  expect(observed().ledger.prepare).toBeUndefined()
})

test('an answer that is durable when it is delivered and then charged is counted nowhere', async () => {
  const { ledger, uncounted } = observed()
  const admission = await ledger.admit(opening, plan)
  admission.deliver()
  admission.settle(charged, 'done')
  expect(await uncounted()).toBe(0)
})

test('an answer that is delivered before its request is durable counts as uncounted', async () => {
  const { ledger, uncounted } = observed({ durable: () => Promise.resolve() })
  const admission = await ledger.admit(opening, plan)
  admission.deliver()
  expect(await uncounted()).toBe(1)
})

test('a delivered answer that is settled without its charge counts as uncounted, in either order', async () => {
  for (const order of ['deliver first', 'settle first'] as const) {
    const { ledger, uncounted } = observed()
    const admission = await ledger.admit(opening, plan)
    if (order === 'deliver first') admission.deliver()
    admission.settle({ ...charged, charged: 0 }, order === 'deliver first' ? 'done' : 'due')
    if (order === 'settle first') admission.deliver()
    expect(await uncounted(), order).toBe(1)
  }
})

test('a delivery that the ledger rejects is not counted, because no byte is sent', async () => {
  const { ledger, uncounted } = observed({
    durable: () => Promise.resolve(),
    deliver: () => {
      throw new Error('no mark')
    },
  })
  const admission = await ledger.admit(opening, plan)
  expect(() => admission.deliver()).toThrow('no mark')
  expect(await uncounted()).toBe(0)
})

test('open requests rise with admissions and fall with settlements', async () => {
  const { ledger, metrics } = observed()
  const open = async (): Promise<number | undefined> =>
    (await seriesOf(metrics)).get('svc_router_open_requests{stream="true"}')
  const admission = await ledger.admit(opening, plan)
  expect(await open()).toBe(1)
  admission.settle(charged, 'none')
  expect(await open()).toBe(0)
})

test('the promise of a commit is passed on unchanged and measured, also when it fails', async () => {
  const written = Promise.reject(new Error('disk full'))
  const { ledger, metrics } = observed({ durable: () => written })
  const admission = await ledger.admit(opening, plan)
  expect(admission.durable()).toBe(written)
  await expect(written).rejects.toThrow('disk full')
  expect((await seriesOf(metrics)).get('svc_router_store_seconds_count{operation="commit"}')).toBe(1)
})

test('polls of the key store are measured, also when they fail', async () => {
  const { metrics } = observed()
  const store = observeKeyStore(
    { find: async () => undefined, revision: () => Promise.reject(new Error('gone')) },
    metrics,
    systemClock(),
  )
  await expect(store.revision()).rejects.toThrow('gone')
  expect((await seriesOf(metrics)).get('svc_router_store_seconds_count{operation="poll"}')).toBe(1)
})
