import { randomInt } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Kysely, sql } from 'kysely'
import { startSimulatedProvider } from '../../src/simulation/providers/simulated-provider.ts'
import type { Tables } from '../../src/storage/schema/schema.ts'
import { RawConnection, writePost } from '../faults/raw-client.ts'
import { ServiceProcess } from '../faults/service-process.ts'
import { recordsInPostgres } from './records-in-postgres.ts'

/** A proxy in front of the nodes, which checks their health. */
export interface Balancer {
  readonly port: number
  /** The time after which it has noticed a node's readiness, milliseconds. */
  readonly noticeMs: number
  stop(): Promise<void>
}

export interface RollingOptions {
  readonly db: Kysely<Tables>
  readonly databaseUrl: string
  readonly startBalancer: (nodePorts: readonly number[]) => Promise<Balancer>
  readonly nodes: number
  readonly workers?: number
  readonly restarts: number
  /** Streams that are open at any time. */
  readonly streams: number
  /** How long a stream lasts, milliseconds. */
  readonly streamMs: number
  /** How long a node accepts requests after its signal: longer than the proxy takes to notice. */
  readonly drainDelayMs?: number
  /** The folder of the sources that a restart starts; this repository's unless given. */
  readonly programOf?: (restart: number) => string | undefined
}

export interface RollingReport {
  restarts: number
  /** Streams that were complete. */
  complete: number
  /** What was wrong with the others. */
  failed: string[]
  /** Exit codes of nodes that did not end with 0. */
  exits: (number | string)[]
  /** Records that are not one charged unit of a complete stream. */
  wrongRecords: string[]
  /** Records, and used units of the month. */
  records: number
  used: number
}

const eventMs = 60
const settleLimitMs = 15_000

/** Restarts one node after the other, while clients behind a proxy keep streams open. */
export async function runRollingRestarts(options: RollingOptions): Promise<RollingReport> {
  const { db, restarts, streams, streamMs } = options
  const folder = mkdtempSync(join(tmpdir(), 'svc-router-rolling-'))
  const provider = await startSimulatedProvider({ name: 'alpha' })
  provider.script([{ do: 'answer', repeat: true, words: Math.ceil(streamMs / eventMs), tokenDelayMs: eventMs }])
  const place = recordsInPostgres(db, {
    DATABASE_URL: options.databaseUrl,
    SVC_ROUTER_PEPPER: 'the pepper of every node of this test',
    SVC_ROUTER_SEALING_KEY: Buffer.alloc(32, 7).toString('base64'),
  })
  const nodes: ServiceProcess[] = []
  const report: RollingReport = {
    restarts: 0,
    complete: 0,
    failed: [],
    exits: [],
    wrongRecords: [],
    records: 0,
    used: 0,
  }
  let balancer: Balancer | undefined
  try {
    for (let number = 0; number < options.nodes; number++) {
      const settings = {
        plans: { max: { name: 'Max', requests_per_minute: 1_000_000, requests_per_month: 100_000_000, premium: true } },
        backends: { alpha: { provider: 'alpha', model: 'simulated' } },
        drain_delay: `${options.drainDelayMs ?? 300}ms`,
        ...(options.workers === undefined ? {} : { workers: options.workers }),
        ...place.settings,
      }
      nodes.push(new ServiceProcess(join(folder, `node-${number}`), [provider], settings, place.env))
    }
    await Promise.all(nodes.map((node) => start(node, options.programOf?.(0))))
    const ports = nodes.map(({ port }) => port)
    balancer = await options.startBalancer(ports)
    const key = nodes.map((node) => node.key).find((found) => found !== '')!
    const over = new AbortController()
    const ids = new Set<string>()
    const { port, noticeMs } = balancer
    const clients = Array.from({ length: streams }, () => keepStreamOpen({ port, key }, over.signal, report, ids))
    for (; report.restarts < restarts; report.restarts++) {
      const at = report.restarts % nodes.length
      await sleep(noticeMs)
      const exit = await nodes[at]!.stop('SIGTERM')
      if (exit !== 0) report.exits.push(exit)
      await start(nodes[at]!, options.programOf?.(report.restarts + 1), ports[at])
    }
    await sleep(noticeMs)
    over.abort()
    await Promise.all(clients)
    await compareRecords(db, ids, report)
    report.used = await place.usedUnits()
    return report
  } finally {
    await balancer?.stop()
    await Promise.all(nodes.map((node) => node.destroy()))
    await provider.close()
    rmSync(folder, { recursive: true, force: true })
  }
}

function start(node: ServiceProcess, program: string | undefined, port = 0): Promise<void> {
  return node.start(program === undefined ? { port } : { port, program })
}

/** One stream after the other, on connections that are used for as long as the service allows. */
async function keepStreamOpen(
  { port, key }: { readonly port: number; readonly key: string },
  over: AbortSignal,
  report: RollingReport,
  ids: Set<string>,
): Promise<void> {
  const body = { model: 'svc-router/frontier', stream: true, messages: [{ role: 'user', content: 'Hello' }] }
  let connection: RawConnection | undefined
  // So that not all streams end at the same time.
  await sleep(randomInt(500))
  while (!over.aborted) {
    connection ??= new RawConnection(port)
    const { status, headers, complete, body: text } = await connection.ask(writePost('/chat/completions', key, body))
    const id = headers['x-request-id'] ?? ''
    if (status === 200 && complete && text.trimEnd().endsWith('data: [DONE]') && !text.includes('"error"')) {
      report.complete += 1
      ids.add(id)
    } else report.failed.push(`${status} ${id} ${complete ? text.slice(-300) : `cut after ${text.length}`}`)
    const closes = headers['connection']?.toLowerCase() === 'close'
    // A client that does not reuse its connection at once checks first whether it was closed.
    const pauseMs = Math.random() < 0.5 ? 0 : randomInt(50)
    if (pauseMs > 0) await sleep(pauseMs)
    if (!closes && !connection.closed) continue
    connection.leave()
    connection = undefined
  }
  connection?.leave()
}

async function compareRecords(db: Kysely<Tables>, ids: ReadonlySet<string>, report: RollingReport): Promise<void> {
  const limitMs = performance.now() + settleLimitMs
  for (;;) {
    const { rows } = await sql<{ id: string; state: string; charged: number }>`
      select id, state, charged from requests`.execute(db)
    const wrong = rows.filter(({ id, state, charged }) => !ids.has(id) || state !== 'done' || charged !== 1)
    report.records = rows.length
    report.wrongRecords = wrong.map(({ id, state, charged }) => `${id} ${state} ${charged}`)
    // The last outcomes are written a moment after their answers.
    if (wrong.length === 0 || performance.now() > limitMs) return
    await sleep(100)
  }
}
