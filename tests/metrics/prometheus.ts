import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePort } from '../../src/runtime/free-port.ts'

const startTimeoutMs = 30_000
const stopTimeoutMs = 5_000
const scrapeMs = 500

/** The alert rules of this repository. */
export const rulesFile = join(import.meta.dirname, '..', '..', 'deploy', 'prometheus', 'alerts.yaml')

const programs = ['prometheus', 'promtool']

/**
 * Whether Prometheus is installed. Where it is not, says so loudly; under CI that is an error.
 */
export function hasPrometheus(suite: string): boolean {
  const folders = (process.env.PATH ?? '').split(':')
  if (programs.every((program) => folders.some((folder) => existsSync(join(folder, program))))) return true
  if (process.env.CI !== undefined) throw new Error(`no Prometheus was found for ${suite}`)
  process.stderr.write(`\nSKIPPED: ${suite}, because prometheus and promtool were not found (Debian: prometheus)\n\n`)
  return false
}

/** Runs promtool; returns its exit code and everything that it printed. */
export function promtool(
  args: readonly string[],
  input = '',
): { readonly status: number | null; readonly text: string } {
  const { status, stdout, stderr } = spawnSync('promtool', args, { input, encoding: 'utf8', timeout: 20_000 })
  return { status, text: `${stdout}${stderr}` }
}

const msOf = { s: 1000, m: 60_000, h: 3_600_000 } as const

/** The rules with every duration divided, so that a drill takes seconds instead of minutes. */
export function scaledRules(divisor: number, replaced: Readonly<Record<string, string>> = {}): string {
  const scale = (amount: string, unit: string): string =>
    `${Math.round((Number(amount) * msOf[unit as keyof typeof msOf]) / divisor)}ms`
  let text = readFileSync(rulesFile, 'utf8')
    .replaceAll(/\[(\d+)([smh])\]/g, (_, amount: string, unit: string) => `[${scale(amount, unit)}]`)
    .replaceAll(/\bfor: (\d+)([smh])/g, (_, amount: string, unit: string) => `for: ${scale(amount, unit)}`)
  for (const [from, to] of Object.entries(replaced)) {
    if (!text.includes(from)) throw new Error(`the rules do not contain ${from}`)
    text = text.replace(from, to)
  }
  return text
}

export interface Alert {
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
  readonly state: 'pending' | 'firing'
}

/** A real Prometheus that reads these ports twice a second. */
export class Prometheus {
  readonly #child: ChildProcess
  readonly #origin: string
  readonly #folder: string

  private constructor(child: ChildProcess, port: number, folder: string) {
    this.#child = child
    this.#origin = `http://127.0.0.1:${port}`
    this.#folder = folder
  }

  static async start(ports: readonly number[], rules: string): Promise<Prometheus> {
    const folder = mkdtempSync(join(tmpdir(), 'svc-router-prometheus-'))
    writeFileSync(join(folder, 'alerts.yaml'), rules)
    const targets = JSON.stringify(ports.map((port) => `127.0.0.1:${port}`))
    writeFileSync(
      join(folder, 'prometheus.yaml'),
      `global: { scrape_interval: ${scrapeMs}ms, scrape_timeout: ${scrapeMs}ms, evaluation_interval: ${scrapeMs}ms, external_labels: { svc_router_app_url: 'https://app.example.com' } }
rule_files: [alerts.yaml]
scrape_configs: [{ job_name: svc-router, static_configs: [{ targets: ${targets} }] }]
`,
    )
    const port = await freePort()
    const child = spawn(
      'prometheus',
      [
        `--config.file=${join(folder, 'prometheus.yaml')}`,
        `--storage.tsdb.path=${join(folder, 'data')}`,
        `--web.listen-address=127.0.0.1:${port}`,
        '--log.level=error',
      ],
      { stdio: 'ignore' },
    )
    const started = new Prometheus(child, port, folder)
    await started.#untilReady(ports.length)
    return started
  }

  async alerts(): Promise<readonly Alert[]> {
    return (await this.#get<{ readonly alerts: readonly Alert[] }>('/api/v1/alerts')).alerts
  }

  /** The value of each result of a query, by its labels as JSON. */
  async query(
    expression: string,
  ): Promise<readonly { readonly metric: Record<string, string>; readonly value: number }[]> {
    const path = `/api/v1/query?query=${encodeURIComponent(expression)}`
    const { result } = await this.#get<{
      readonly result: readonly { readonly metric: Record<string, string>; readonly value: readonly [number, string] }[]
    }>(path)
    return result.map(({ metric, value: [, value] }) => ({ metric, value: Number(value) }))
  }

  /** Waits until an alert fires, or with `false` until it has cleared. @throws Error after `limitMs` */
  async until(name: string, fires: boolean, limitMs = 20_000): Promise<Alert | undefined> {
    const deadline = performance.now() + limitMs
    for (;;) {
      const found = (await this.alerts()).find(({ labels }) => labels['alertname'] === name)
      if (fires ? found?.state === 'firing' : found === undefined) return found
      if (performance.now() > deadline) {
        const state = found?.state ?? 'inactive'
        throw new Error(`${name} did not ${fires ? 'fire' : 'clear'} within ${limitMs} ms: it is ${state}`)
      }
      await sleep(scrapeMs)
    }
  }

  async stop(): Promise<void> {
    const exited = new Promise((resolve) => this.#child.once('exit', resolve))
    this.#child.kill('SIGTERM')
    const force = setTimeout(() => this.#child.kill('SIGKILL'), stopTimeoutMs)
    await exited
    clearTimeout(force)
    rmSync(this.#folder, { recursive: true, force: true })
  }

  async #get<Data>(path: string): Promise<Data> {
    const response = await fetch(`${this.#origin}${path}`, { signal: AbortSignal.timeout(5_000) })
    const body = (await response.json()) as { readonly status: string; readonly data: Data; readonly error?: string }
    if (body.status !== 'success') throw new Error(`Prometheus: ${body.error}`)
    return body.data
  }

  async #untilReady(targets: number): Promise<void> {
    const deadline = performance.now() + startTimeoutMs
    while (performance.now() < deadline && this.#child.exitCode === null) {
      try {
        // Prometheus reads its first target after five seconds.
        if ((await fetch(`${this.#origin}/-/ready`)).ok && (await this.query('up == 1')).length === targets) return
      } catch {
        // It does not listen yet.
      }
      await sleep(50)
    }
    await this.stop()
    throw new Error('Prometheus did not start')
  }
}
