import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePort } from '../../src/runtime/free-port.ts'

const startTimeoutMs = 20_000
/** Built by tests/otel-collector/build.mjs. */
const program = join(import.meta.dirname, '..', '..', '.cache', 'otelcol', 'otelcol')

/** A span as OTLP's JSON has it, with its attributes as an object. */
export interface ReceivedSpan {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  readonly name: string
  /** 2 is a server, 3 a client. */
  readonly kind: number
  readonly startTimeUnixNano: string
  readonly endTimeUnixNano: string
  readonly status: { readonly code?: number }
  readonly attributes: Readonly<Record<string, unknown>>
}

interface Attribute {
  readonly key: string
  readonly value: Readonly<Record<string, unknown>>
}

interface Export {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly Attribute[] }
    readonly scopeSpans: readonly {
      readonly spans: readonly (Omit<ReceivedSpan, 'attributes'> & { readonly attributes?: readonly Attribute[] })[]
    }[]
  }[]
}

/** Receives traces from a service. */
export interface Collector {
  readonly endpoint: string
  /** Everything that was received, as text. */
  text(): string
  spans(): readonly ReceivedSpan[]
  stop(): Promise<void>
}

/** Whether a real OpenTelemetry collector is here; where it is not, says so loudly. */
export function hasCollector(): boolean {
  if (existsSync(program)) return true
  process.stderr.write(
    '\nSKIPPED: traces in a real OpenTelemetry collector, because it was not built (node tests/otel-collector/build.mjs)\n\n',
  )
  return false
}

/** The official collector, with an OTLP receiver and a file as its exporter. */
export async function startRealCollector(): Promise<Collector> {
  const folder = mkdtempSync(join(tmpdir(), 'svc-router-otelcol-'))
  const [port, telemetryPort] = [await freePort(), await freePort()]
  const output = join(folder, 'traces.json')
  writeFileSync(
    join(folder, 'config.yaml'),
    `receivers: { otlp: { protocols: { http: { endpoint: '127.0.0.1:${port}' } } } }
exporters: { file: { path: '${output}', flush_interval: 100ms } }
service:
  telemetry: { metrics: { readers: [{ pull: { exporter: { prometheus: { host: 127.0.0.1, port: ${telemetryPort} } } } }] } }
  pipelines: { traces: { receivers: [otlp], exporters: [file] } }
`,
  )
  const child = spawn(program, ['--config', join(folder, 'config.yaml')], { stdio: 'ignore' })
  await untilOpen(port, child)
  const text = (): string => (existsSync(output) ? readFileSync(output, 'utf8') : '')
  return {
    endpoint: `http://127.0.0.1:${port}/v1/traces`,
    text,
    spans: () => text().split('\n').filter(Boolean).flatMap(spansOf),
    async stop() {
      const exited = new Promise((resolve) => child.once('exit', resolve))
      child.kill('SIGTERM')
      await exited
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** A stand-in that keeps what it receives. `status` makes it refuse. */
export async function startFakeCollector(status = 200): Promise<Collector & { readonly requests: () => number }> {
  const bodies: string[] = []
  const server: Server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      bodies.push(Buffer.concat(chunks).toString('utf8'))
      response.writeHead(status, { 'content-type': 'application/json' }).end('{}')
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/traces`,
    text: () => bodies.join('\n'),
    spans: () => bodies.flatMap(spansOf),
    requests: () => bodies.length,
    async stop() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

function spansOf(text: string): readonly ReceivedSpan[] {
  const { resourceSpans } = JSON.parse(text) as Export
  return resourceSpans.flatMap(({ scopeSpans }) =>
    scopeSpans.flatMap(({ spans }) => spans.map((span) => ({ ...span, attributes: plain(span.attributes ?? []) }))),
  )
}

function plain(attributes: readonly Attribute[]): Record<string, unknown> {
  return Object.fromEntries(
    attributes.map(({ key, value }) => {
      const [[kind, held] = ['', undefined]] = Object.entries(value)
      return [key, kind === 'intValue' ? Number(held) : held]
    }),
  )
}

async function untilOpen(port: number, child: ChildProcess): Promise<void> {
  const deadline = performance.now() + startTimeoutMs
  while (performance.now() < deadline && child.exitCode === null) {
    const isOpen = await new Promise<boolean>((resolve) => {
      const socket = connect(port, '127.0.0.1', () => {
        socket.destroy()
        resolve(true)
      }).on('error', () => resolve(false))
    })
    if (isOpen) return
    await sleep(50)
  }
  child.kill('SIGKILL')
  throw new Error('the OpenTelemetry collector did not start')
}
