import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { root } from './tools.ts'

const read = (path: string): string => readFileSync(join(root, path), 'utf8')
const { version, optionalDependencies } = JSON.parse(read('package.json')) as {
  readonly version: string
  readonly optionalDependencies: Readonly<Record<string, string>>
}
const install = read('docs/install.md')
const chart = parse(read('deploy/helm/svc-router/Chart.yaml')) as Readonly<Record<string, string>>
const values = parse(read('deploy/helm/svc-router/values.yaml')) as { readonly terminationGracePeriodSeconds: number }
const compose = parse(read('deploy/compose/compose.yaml')) as {
  readonly services: Readonly<Record<string, { readonly image: string; readonly stop_grace_period: string }>>
}
const all = (text: string, pattern: RegExp): string[] => Array.from(text.matchAll(pattern), ([, found]) => found!)

test('every file that is installed names the version of package.json', () => {
  const named = [
    chart.version,
    chart.appVersion,
    ...all(compose.services['svc-router']!.image, /:(.+)$/g),
    ...all(install, /svc-router[-:](\d[\d.]*\d)/g),
  ]
  expect(new Set(named)).toEqual(new Set([version]))
})

test('the image and the release use the pinned Node', () => {
  const named = [
    ...all(read('Dockerfile'), /node:([\d.]+)/g),
    ...all(read('.github/workflows/release.yml'), /node-version: ([\d.]+)/g),
  ]
  expect(new Set(named)).toEqual(new Set(Object.values(optionalDependencies)))
})

test('the page "Install" and the security policy name the oldest Node that works', () => {
  const oldest = /^export const oldestNode = \[(\d+), (\d+)\]$/m.exec(read('bin/boot.mjs'))!.slice(1).join('.')
  expect(new Set(all(install, /\bNode (\d+\.\d+) or newer/g))).toEqual(new Set([oldest]))
  expect(read('SECURITY.md')).toContain(`Node version from ${oldest}`)
})

test('every way to install allows a shutdown the default of drain, 5 s before it, and some time after it', () => {
  const [drain] = all(read('svc-router.example.yaml'), /^drain: (\d+)s$/gm)
  const allowed = [
    values.terminationGracePeriodSeconds,
    ...all(compose.services['svc-router']!.stop_grace_period, /^(\d+)s$/g),
    ...all(read('deploy/systemd/svc-router.service'), /^TimeoutStopSec=(\d+)$/gm),
    ...all(install, /--stop-timeout (\d+)/g),
  ].map(Number)
  expect(allowed).toHaveLength(4)
  for (const seconds of allowed) expect(seconds).toBeGreaterThanOrEqual(Number(drain) + 5 + 5)
})
