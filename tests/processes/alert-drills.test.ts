import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Worker } from 'node:worker_threads'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { putSetting, removeSetting } from '../../src/accounts/settings.ts'
import type { UsageSignals } from '../../src/domain/account-meter.ts'
import { defaultPlans } from '../../src/domain/plans.ts'
import { observeLedger } from '../../src/metrics/observed-ledger.ts'
import { serveMetrics, type MetricsListening } from '../../src/metrics/serve-metrics.ts'
import { ServiceMetrics } from '../../src/metrics/service-metrics.ts'
import { systemClock } from '../../src/runtime/clock.ts'
import type { ScriptStep } from '../../src/simulation/providers/script.ts'
import { databasePath } from '../../src/storage/sqlite/connect-sqlite.ts'
import { freezeDatabase } from '../frozen-database.ts'
import { isLongRun } from '../long-run.ts'
import { healthySources } from '../metrics/healthy-sources.ts'
import { type Alert, hasPrometheus, Prometheus, scaledRules } from '../metrics/prometheus.ts'
import { Service } from '../service.ts'

const dashboardFile = join(import.meta.dirname, '..', '..', 'deploy', 'grafana', 'svc-router.json')
/** Five minutes become two and a half seconds. */
const divisor = 120
/** A stream that begins this late is slow in the drill; in the rules it is 10 s. */
const slowSeconds = 0.4
/** The database must hang for longer than the service waits for it. */
const frozenMs = 6_000
/** The database answers, but takes longer than it may. */
const slowMs = 900
/** More than an event loop may lag, and less than Prometheus waits here. */
const blockedMs = 220
/** One profile for each kind of bad backend. */
const profiles = {
  'drill/fails': { backends: ['alpha'] },
  'drill/rejects': { backends: ['beta'] },
  'drill/breaks': { backends: ['gamma'] },
  'drill/late': { backends: ['delta'] },
}
const plans = {
  max: { name: 'Max', requests_per_minute: 1_000_000, requests_per_month: 100_000_000, premium: true },
}

/**
 * Drills that happen one after another, for `npm run test:long`. `npm test` checks the rules with promtool instead, and the
 * metrics with the tests of the service's metrics.
 */
const longTest = test.runIf(isLongRun)

describe.runIf(hasPrometheus('the drills of the alert rules'))('with a real Prometheus', () => {
  let service: Service
  let worker: Worker
  let prometheus: Prometheus
  /** What cannot be made to happen in a service: its metrics, served as a service does. */
  let broken: { readonly metrics: ServiceMetrics; readonly listening: MetricsListening }

  beforeAll(async () => {
    const started = once(process, 'worker', { signal: AbortSignal.timeout(20_000) })
    service = await Service.start({
      formats: ['openai-chat', 'openai-chat', 'openai-chat', 'openai-chat'],
      hasOwnThread: true,
      settings: { metrics_listen: { port: 0 }, limits: { streams: 10 }, profiles, plans, default_plan: 'max' },
    })
    ;[worker] = (await started) as [Worker]
    const metrics = new ServiceMetrics({ version: '1', profiles: [], backends: [] })
    metrics.watch(healthySources)
    broken = { metrics, listening: await serveMetrics(metrics.registry, { host: '127.0.0.1', port: 0 }, () => {}) }
    const rules = scaledRules(divisor, { '[5000ms]))) > 10': `[5000ms]))) > ${slowSeconds}` })
    prometheus = await Prometheus.start([service.config.metricsListen!.port, broken.listening.port], rules)
  })
  afterAll(async () => {
    await prometheus?.stop()
    await broken?.listening[Symbol.asyncDispose]()
    await service?.stop()
  })

  /** Sends streams to these profiles, one after the other to each, until the returned function is called. */
  function keepSending(...models: readonly string[]): () => Promise<void> {
    const ends = models.map((model) =>
      repeat(async () => {
        const answer = await service.chat({ model, stream: true })
        await answer.text().catch(() => {})
        await sleep(50)
      }),
    )
    return async () => {
      await Promise.all(ends.map((end) => end()))
    }
  }

  const firing = async (names: readonly string[], limitMs?: number): Promise<readonly Alert[]> => {
    const alerts = await Promise.all(names.map((name) => prometheus.until(name, true, limitMs)))
    return alerts.filter((alert) => alert !== undefined)
  }
  const clear = (names: readonly string[]): Promise<unknown> =>
    Promise.all(names.map((name) => prometheus.until(name, false, 40_000)))

  test('a healthy service fires nothing', async () => {
    const end = keepSending(...Object.keys(profiles))
    await sleep(3_000)
    await end()
    expect((await prometheus.alerts()).map(({ labels }) => labels)).toEqual([])
    expect((await prometheus.query('sum(svc_router_requests_total{result="answered"})'))[0]!.value).toBeGreaterThan(10)
  })

  test('every query of the dashboard has a result', async () => {
    const end = keepSending(...Object.keys(profiles))
    await sleep(1_500)
    const { panels } = JSON.parse(readFileSync(dashboardFile, 'utf8')) as {
      readonly panels: readonly { readonly targets?: readonly { readonly expr: string }[] }[]
    }
    const expressions = panels.flatMap(({ targets }) => (targets ?? []).map(({ expr }) => expr))
    const empty: string[] = []
    for (const expression of expressions) {
      const variables = { $__rate_interval: '5s', $job: '.+', $instance: '.+' }
      const query = Object.entries(variables).reduce((text, [name, value]) => text.replaceAll(name, value), expression)
      if ((await prometheus.query(query)).length === 0) empty.push(expression)
    }
    await end()
    // Nothing fails in a healthy service; the other queries must find something.
    expect(empty.filter((expression) => !/> 0$|== 1$|outcome!~|failovers/.test(expression))).toEqual([])
  })

  // At the same time, because each waits for Prometheus.
  test.concurrent('each kind of bad backend fires its alerts until it is good again', async () => {
    const scripts: readonly ScriptStep[] = [
      { do: 'status', status: 500, repeat: true },
      { do: 'status', status: 401, repeat: true },
      { do: 'cut', afterEvents: 3, repeat: true },
      { do: 'slow_first', ms: 600, repeat: true },
    ]
    const names = {
      SvcRouterBackendDown: 'alpha',
      SvcRouterCredentialsRejected: 'beta',
      SvcRouterAnswersBreak: 'gamma',
      SvcRouterFirstContentSlow: 'delta',
    }
    const others = ['SvcRouterRequestsFail', 'SvcRouterProfileFails']
    for (const [index, step] of scripts.entries()) service.providers[index]!.script([step])
    const end = keepSending(...Object.keys(profiles))
    const alerts = await firing([...Object.keys(names), ...others])
    for (const [name, backend] of Object.entries(names))
      expect(
        (await prometheus.alerts())
          .filter(({ labels }) => labels['alertname'] === name)
          .map(({ labels }) => labels['backend']),
        name,
      ).toContain(backend)
    for (const { annotations } of alerts)
      expect(annotations['runbook_url']).toMatch(/^https:\/\/app\.example\.com\/docs\/alerts#svcrouter\w+$/)
    for (const provider of service.providers) provider.script([])
    await clear([...Object.keys(names), ...others])
    await end()
  })

  test.concurrent('what never happens fires an alert if it does: a bug, a failing component, an uncounted delivery', async () => {
    const { metrics } = broken
    metrics.note({ event: 'internal_error', requestId: '', name: 'Error', stack: '' })
    metrics.note({ event: 'mail_failing', reason: 'ECONNREFUSED' })
    // A ledger that permits delivery before the record is durable.
    const ledger = observeLedger(
      {
        admit: () => ({
          signals: () => ({}) as UsageSignals,
          durable: () => Promise.resolve(),
          deliver: () => {},
          settle: () => {},
        }),
        signals: () => ({}) as UsageSignals,
      },
      metrics,
      systemClock(),
    )
    const opening = { id: 'r', accountId: 'a', keyId: 'k', profile: 'p', format: 'f', stream: true, units: 1 }
    const admission = await ledger.admit(opening, defaultPlans[0]!)
    admission.deliver()
    const names = ['SvcRouterBug', 'SvcRouterComponentFails', 'SvcRouterDeliveredUncounted']
    await firing(names)
    await clear(names)
  })

  test.concurrent('settings that a node cannot use fire an alert until they are corrected', async () => {
    const deps = { ...service.accountsDeps, store: service.store }
    const value = { provider: 'elsewhere', model: 'm' }
    await putSetting(deps, { kind: 'backends', name: 'foreign', value, managed: true }, undefined)
    const alert = await prometheus.until('SvcRouterSettingsNotApplied', true)
    expect(alert?.labels['instance']).toBe(`127.0.0.1:${service.config.metricsListen!.port}`)
    expect(service.events).toContainEqual({ event: 'settings_failing', reason: 'backends.foreign.provider' })
    await removeSetting(deps, 'backends', 'foreign')
    await prometheus.until('SvcRouterSettingsNotApplied', false)
  })

  longTest('a full share fires an alert', async () => {
    for (const provider of service.providers)
      provider.script([{ do: 'answer', words: 400, tokenDelayMs: 50, repeat: true }])
    const held = new AbortController()
    const body = { model: 'drill/fails', stream: true, messages: [{ role: 'user', content: 'Hello.' }] }
    const streams = Array.from({ length: 8 }, () => service.post('/chat/completions', body, {}, held.signal))
    const answers = await Promise.all(streams)
    expect(answers.map(({ status }) => status)).toEqual(streams.map(() => 200))
    const end = keepSending('drill/fails')
    await firing(['SvcRouterShareFull'])
    held.abort()
    // Unreachable responses would be closed by the garbage collector.
    expect(answers.every(({ bodyUsed }) => !bodyUsed)).toBe(true)
    for (const provider of service.providers) provider.script([])
    await end()
    await clear(['SvcRouterShareFull'])
  })

  longTest('a blocked event loop fires an alert', async () => {
    const end = repeat(async () => {
      const untilMs = performance.now() + blockedMs
      while (performance.now() < untilMs);
      await sleep(150)
    })
    await firing(['SvcRouterEventLoopSlow'])
    await end()
    await clear(['SvcRouterEventLoopSlow'])
  })

  longTest(
    'a database that hangs fires alerts about the store, quota writes, and readiness',
    async () => {
      const names = ['SvcRouterStoreFails', 'SvcRouterNotReady', 'SvcRouterQuotaWritesFail']
      const thaw = freezeDatabase(worker, databasePath(service.config.dataDir))
      const end = keepSending('drill/fails')
      try {
        await Promise.all([firing(names, 40_000), sleep(frozenMs)])
      } finally {
        thaw()
      }
      await clear(names)
      await end()
    },
    90_000,
  )

  longTest('a slow database fires an alert', async () => {
    const end = repeat(async () => {
      const thaw = freezeDatabase(worker, databasePath(service.config.dataDir))
      await sleep(slowMs)
      thaw()
      await sleep(50)
    })
    await firing(['SvcRouterStoreSlow'])
    await end()
    await clear(['SvcRouterStoreSlow'])
  })

  longTest('a listener that is gone fires an alert', async () => {
    await broken.listening[Symbol.asyncDispose]()
    const alert = await prometheus.until('SvcRouterDown', true)
    expect(alert?.labels['instance']).toBe(`127.0.0.1:${broken.listening.port}`)
    const again = await serveMetrics(
      broken.metrics.registry,
      { host: '127.0.0.1', port: broken.listening.port },
      () => {},
    )
    try {
      await prometheus.until('SvcRouterDown', false)
    } finally {
      await again[Symbol.asyncDispose]()
    }
  })
})

/** Does something again and again until the returned function is called, which throws what it threw. */
function repeat(work: () => Promise<void>): () => Promise<void> {
  const over = new AbortController()
  const working = (async () => {
    while (!over.signal.aborted) await work()
  })()
  // Reported by the returned function, unless the test has failed already.
  working.catch(() => {})
  return async () => {
    over.abort()
    await working
  }
}
