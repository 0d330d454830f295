import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { parse, stringify } from 'yaml'
import { ServiceMetrics } from '../../src/metrics/service-metrics.ts'
import { headingId } from '../../src/web/components/markdown.ts'
import { hasPrometheus, promtool, rulesFile } from './prometheus.ts'

const root = join(import.meta.dirname, '..', '..')
const read = (path: string): string => readFileSync(join(root, path), 'utf8')

interface Rule {
  readonly alert: string
  readonly expr: string
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
}

const rules = (parse(readFileSync(rulesFile, 'utf8')) as { groups: { rules: Rule[] }[] }).groups.flatMap(
  (group) => group.rules,
)

/** The names of all metrics, and of the series of histograms. */
async function exportedNames(): Promise<ReadonlySet<string>> {
  const { registry } = new ServiceMetrics({ version: '1', profiles: ['p'], backends: ['b'] })
  await registry.metrics()
  const names = registry
    .getMetricsAsArray()
    .flatMap(({ name, type }) =>
      type === 'histogram' ? [name, `${name}_bucket`, `${name}_sum`, `${name}_count`] : [name],
    )
  return new Set([...names, 'up'])
}

const metricNames = (expression: string): string[] =>
  Array.from(expression.matchAll(/\b((?:svc_router|nodejs|process)_\w+)/g), ([, name]) => name!)

test('every alert has a severity, a summary, and a runbook that exists', () => {
  const headings = Array.from(read('docs/alerts.md').matchAll(/^### (.+)$/gm), ([, heading]) => heading!)
  expect(rules.map(({ alert }) => alert).toSorted()).toEqual(headings.toSorted())
  for (const { alert, labels, annotations } of rules) {
    expect(['critical', 'warning'], alert).toContain(labels['severity'])
    expect(annotations['summary'], alert).toBeTruthy()
    expect(annotations['runbook_url'], alert).toBe(
      `{{ $externalLabels.svc_router_app_url }}/docs/alerts#${headingId(alert)}`,
    )
  }
  const anchors = new Set(headings.map(headingId))
  for (const [, anchor] of read('docs/alerts.md').matchAll(/\]\(#([\w-]+)\)/g)) expect(anchors).toContain(anchor)
})

test('alerts and the dashboard read only metrics that exist', async () => {
  const names = await exportedNames()
  const dashboard = JSON.parse(read('deploy/grafana/svc-router.json')) as {
    panels: { title: string; targets?: { expr: string }[] }[]
  }
  const expressions = dashboard.panels.flatMap(({ targets }) => (targets ?? []).map(({ expr }) => expr))
  expect(expressions.length).toBeGreaterThan(15)
  for (const expression of [...rules.map(({ expr }) => expr), ...expressions])
    for (const name of metricNames(expression)) expect(names, expression).toContain(name)
})

test('the documentation lists exactly the metrics that exist', async () => {
  const names = [...(await exportedNames())].filter(
    (name) => name.startsWith('svc_router_') && !/_(?:bucket|sum|count)$/.test(name),
  )
  const documented = Array.from(read('docs/observability.md').matchAll(/^\| `(svc_router_\w+)`/gm), ([, name]) => name!)
  expect(documented.toSorted()).toEqual(names.toSorted())
})

/** Series of one service. */
const series = (name: string, labels = ''): string => `${name}{job="svc-router", instance="a"${labels}}`
/** A failure in the second minute, of twenty. */
const once = '0 0 1x18'
const storeSeconds = (le: string, values: string) =>
  [series('svc_router_store_seconds_bucket', `, operation="admit", le="${le}"`), values] as const

/**
 * The alerts whose drills need `npm run test:long`: series that fire them, and minutes at which they fire and at which
 * they have cleared.
 */
const synthetic: readonly (readonly [
  alert: string,
  input: readonly (readonly [series: string, values: string])[],
  firingAt: number,
  clearAt: number,
])[] = [
  ['SvcRouterDown', [[series('up'), '0x4 1x16']], 2, 8],
  ['SvcRouterNotReady', [[series('svc_router_ready'), '0x4 1x16']], 2, 8],
  [
    'SvcRouterShareFull',
    [[series('svc_router_share_rejections_total', ', resource="streams"'), '0+30x12 360x20']],
    10,
    25,
  ],
  ['SvcRouterEventLoopSlow', [[series('nodejs_eventloop_lag_p99_seconds'), '0.3x5 0x20']], 4, 15],
  ['SvcRouterStoreFails', [[series('svc_router_failures_total', ', part="store"'), once]], 3, 12],
  ['SvcRouterStoreFails', [[series('svc_router_refusals_total', ', code="auth_unavailable"'), once]], 3, 12],
  ['SvcRouterStoreFails', [[series('svc_router_refusals_total', ', code="store_unavailable"'), once]], 3, 12],
  ['SvcRouterQuotaWritesFail', [[series('svc_router_failures_total', ', part="ledger"'), once]], 3, 12],
  ['SvcRouterQuotaWritesFail', [[series('svc_router_refusals_total', ', code="record_unavailable"'), once]], 3, 12],
  [
    'SvcRouterQuotaWritesFail',
    [[series('svc_router_request_outcomes_total', ', outcome="record_unavailable"'), once]],
    3,
    12,
  ],
  [
    'SvcRouterStoreSlow',
    [storeSeconds('0.5', '0x30'), storeSeconds('1', '0+60x12 720x18'), storeSeconds('+Inf', '0+60x12 720x18')],
    12,
    25,
  ],
]

describe.runIf(hasPrometheus('the checks of promtool'))('promtool', () => {
  test('accepts the rules and the example configuration', () => {
    expect(promtool(['check', 'rules', rulesFile])).toMatchObject({ status: 0 })
    expect(promtool(['check', 'config', join(root, 'deploy/prometheus/prometheus.yaml')])).toMatchObject({ status: 0 })
  })

  test('fires the alert about open files, which no drill can cause, and clears it', () => {
    const labels = { job: 'svc-router', instance: 'a' }
    const { annotations } = rules.find(({ alert }) => alert === 'SvcRouterFilesNearLimit')!
    const exp_annotations = {
      summary: 'a uses 90% of its open files',
      runbook_url: annotations['runbook_url']!.replace(/\{\{.*?\}\}/, ''),
    }
    const alertname = 'SvcRouterFilesNearLimit'
    const document = {
      rule_files: [rulesFile],
      tests: [
        {
          interval: '1m',
          input_series: [
            { series: series('process_open_fds'), values: '900x10 100x10' },
            { series: series('process_max_fds'), values: '1000x20' },
          ],
          alert_rule_test: [
            { eval_time: '4m', alertname, exp_alerts: [] },
            {
              eval_time: '6m',
              alertname,
              exp_alerts: [{ exp_labels: { ...labels, severity: 'warning' }, exp_annotations }],
            },
            { eval_time: '12m', alertname, exp_alerts: [] },
          ],
        },
      ],
    }
    expect(testRules(document)).toMatchObject({ status: 0 })
  })

  test('fires and clears each alert whose drill is long', () => {
    const firing = (alert: string): string => `count by (alertname) (ALERTS{alertstate="firing", alertname="${alert}"})`
    const tests = synthetic.map(([alert, input, firingAt, clearAt]) => ({
      interval: '1m',
      input_series: input.map(([name, values]) => ({ series: name, values })),
      promql_expr_test: [
        {
          expr: firing(alert),
          eval_time: `${firingAt}m`,
          exp_samples: [{ labels: `{alertname="${alert}"}`, value: 1 }],
        },
        { expr: firing(alert), eval_time: `${clearAt}m`, exp_samples: [] },
      ],
    }))
    expect(testRules({ rule_files: [rulesFile], evaluation_interval: '1m', tests })).toMatchObject({ status: 0 })
  })

  test('finds nothing to complain about in the metrics', async () => {
    const metrics = new ServiceMetrics({ version: '1', profiles: ['svc-router/frontier'], backends: ['alpha'] })
    const text = await metrics.registry.metrics()
    // Names of the Node client's own metrics are not ours.
    const { text: complaints } = promtool(['check', 'metrics'], text)
    expect(complaints.split('\n').filter((line) => line.startsWith('svc_router_'))).toEqual([])
  })
})

/** Runs promtool's tests of rules. */
function testRules(document: object): ReturnType<typeof promtool> {
  const folder = mkdtempSync(join(tmpdir(), 'svc-router-rules-'))
  try {
    const file = join(folder, 'test.yaml')
    writeFileSync(file, stringify(document))
    return promtool(['test', 'rules', file])
  } finally {
    rmSync(folder, { recursive: true })
  }
}
