import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'vitest'
import { readWorkerPlace, workerEnv } from '../../src/cli/process/workers.ts'
import type { ScriptStep } from '../../src/simulation/providers/script.ts'
import { startSimulatedProvider, type SimulatedProvider } from '../../src/simulation/providers/simulated-provider.ts'
import { markPath, workerFolder } from '../../src/storage/data-folder.ts'
import { holdsAnswer, RawConnection, writePost } from '../faults/raw-client.ts'
import { ServiceProcess, type RecordRow } from '../faults/service-process.ts'

const clients = 32
const stepsPerProvider = 3_000
const shortestLifeMs = 60
const longestLifeMs = 700
const replacedWithinMs = 10_000
const decidedWithinMs = 30_000
const deliveredWithinMs = 20_000

/** The results of all requests in all cycles. */
export interface CrashReport {
  cycles: number
  /** Requests that were sent. */
  sent: number
  /** Requests that the kill interrupted in any state. */
  cut: number
  admitted: number
  delivered: number
  charged: number
  /** IDs of answers with at least one delivered byte that are not charged. */
  deliveredUncounted: string[]
  /** IDs of charged requests without a delivered byte. */
  undeliveredCounted: string[]
  /**
   * Of these, the ones killed between the mark and the first byte, two adjacent system calls
   * (docs/decisions/03): at most one for each kill, and always the one with the last mark.
   */
  diedAtTheMark: string[]
  /** Cycles after which the month's units were not the sum of the records. */
  unequalTotals: number
}

/** Where the service stores its records: in SQLite in its data folder unless given. */
export interface RecordPlace {
  readonly settings: object
  readonly env: NodeJS.ProcessEnv
  /** All records after an ID, in the order of their IDs. */
  records(afterId: string): Promise<readonly RecordRow[]>
  /** The used units of all accounts and months. */
  usedUnits(): Promise<number>
}

export interface CrashOptions {
  readonly place?: RecordPlace
  /** How many workers it has, each with a ring of marks of its own. */
  readonly workers?: number
  /** What is killed: the process that was started, after which the service is started again, or one of its workers. */
  readonly victim?: 'service' | 'worker'
  /** The last kill waits until this many answers were delivered in all cycles, which a slow machine takes longer for. */
  readonly minDelivered?: number
  /** Called after each cycle. */
  readonly onCycle?: () => void
}

/**
 * Runs the real service under load, kills it with SIGKILL at a random moment, restarts it on the same data, and
 * compares what clients received with what is charged, in each cycle.
 */
export async function runCrashCycles(cycles: number, options: CrashOptions = {}): Promise<CrashReport> {
  const { place, workers } = options
  const folder = mkdtempSync(join(tmpdir(), 'svc-router-crash-'))
  const names = ['alpha', 'beta-responses', 'gamma']
  const providers = await Promise.all(names.map((name) => startSimulatedProvider({ name })))
  const timeouts = { connect: '500ms', first_content: '400ms', whole_answer: '400ms', idle: '400ms' }
  const settings = {
    keep_alive: '100ms',
    plans: { max: { name: 'Max', requests_per_minute: 1_000_000, requests_per_month: 100_000_000, premium: true } },
    backends: Object.fromEntries(names.map((name) => [name, { provider: name, model: 'simulated', timeouts }])),
    ...(workers === undefined ? {} : { workers }),
    ...place?.settings,
  }
  const service = new ServiceProcess(folder, providers, settings, place?.env)
  const report: CrashReport = {
    cycles,
    sent: 0,
    cut: 0,
    admitted: 0,
    delivered: 0,
    charged: 0,
    deliveredUncounted: [],
    undeliveredCounted: [],
    diedAtTheMark: [],
    unequalTotals: 0,
  }
  try {
    await service.start()
    let lastId = ''
    for (let cycle = 0; cycle < cycles; cycle++) {
      for (const provider of providers) provider.script(randomSteps())
      const owed = cycle === cycles - 1 ? (options.minDelivered ?? 0) - report.delivered : 0
      const { delivered, lastMarked } = await underLoad(service, report, options, owed)
      if (options.victim !== 'worker') await service.start()
      const read = async (): Promise<readonly RecordRow[]> => (await place?.records(lastId)) ?? service.records(lastId)
      if (options.victim === 'worker') await allDecided(read)
      const records = await read()
      lastId = records.at(-1)?.id ?? lastId
      compare(records, delivered, lastMarked, report)
      const used = (await place?.usedUnits()) ?? service.usedUnits()
      if (used !== report.charged) report.unequalTotals += 1
      options.onCycle?.()
    }
    return report
  } finally {
    await service.destroy()
    await Promise.all(providers.map((provider: SimulatedProvider) => provider.close()))
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Ends everything, and returns the last mark of each process that wrote marks. */
async function killService(service: ServiceProcess, workers: number | undefined): Promise<(string | undefined)[]> {
  await service.stop('SIGKILL')
  if (workers === undefined) return [readLastMark(service.dataDir)]
  return Array.from({ length: workers }, (_, worker) => readLastMark(workerFolder(service.dataDir, worker)))
}

/** Kills a random worker, and waits until it is replaced. */
async function killWorker(service: ServiceProcess): Promise<(string | undefined)[]> {
  const before = service.workers()
  const pid = before[Math.floor(Math.random() * before.length)]!
  const environment = readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0')
  const place = environment.find((line) => line.startsWith(`${workerEnv}=`))!.slice(workerEnv.length + 1)
  process.kill(pid, 'SIGKILL')
  while (service.workers().includes(pid)) await delay(1)
  const lastMarked = readLastMark(workerFolder(service.dataDir, readWorkerPlace(place)!.number))
  await expect.poll(() => service.workers().length, { timeout: replacedWithinMs }).toBe(before.length)
  return [lastMarked]
}

/** Waits until the fate of every request is recorded, without a restart. */
async function allDecided(read: () => Promise<readonly RecordRow[]>): Promise<void> {
  const isOpen = ({ state }: RecordRow): boolean => state !== 'done' && state !== 'lost'
  await expect.poll(async () => (await read()).filter(isOpen), { timeout: decidedWithinMs }).toEqual([])
}

function compare(
  records: readonly RecordRow[],
  delivered: ReadonlySet<string>,
  lastMarked: readonly (string | undefined)[],
  report: CrashReport,
): void {
  const charged = new Set<string>()
  for (const record of records) if (record.charged > 0) charged.add(record.id)
  report.admitted += records.length
  report.delivered += delivered.size
  report.charged += records.reduce((sum, record) => sum + record.charged, 0)
  report.deliveredUncounted.push(...[...delivered].filter((id) => !charged.has(id)))
  const undelivered = [...charged].filter((id) => !delivered.has(id))
  report.undeliveredCounted.push(...undelivered)
  report.diedAtTheMark.push(...undelivered.filter((id) => lastMarked.includes(id)))
}

/** The last request marked before the kill, read from the ring of marks. */
function readLastMark(folder: string): string | undefined {
  const bytes = readFileSync(markPath(folder))
  let last: { number: number; id: string } | undefined
  for (let at = 64; at + 40 <= bytes.length; at += 40) {
    const number = bytes.readDoubleLE(at)
    if (number <= (last?.number ?? 0)) continue
    last = { number, id: bytes.toString('latin1', at + 8, at + 40).replace(/\0+$/, '') }
  }
  return last?.id
}

interface Loaded {
  /** The IDs of requests with at least one byte of an answer. */
  readonly delivered: ReadonlySet<string>
  readonly lastMarked: readonly (string | undefined)[]
}

/** Keeps the service busy until something is killed, after at least `owed` delivered answers. */
async function underLoad(
  service: ServiceProcess,
  report: CrashReport,
  { victim = 'service', workers }: CrashOptions,
  owed: number,
): Promise<Loaded> {
  const delivered = new Set<string>()
  const over = new AbortController()
  const client = async (number: number): Promise<void> => {
    let connection = new RawConnection(service.port)
    while (!over.signal.aborted) {
      report.sent += 1
      const answer = await connection.ask(randomRequest(service.key))
      if (!answer.complete) report.cut += 1
      const id = answer.headers['x-request-id']
      if (id !== undefined && holdsAnswer(answer)) delivered.add(id)
      // Every second client opens a new connection for each request.
      if (number % 2 === 0 && !connection.closed) continue
      connection.leave()
      connection = new RawConnection(service.port)
    }
    connection.leave()
  }
  const all = Promise.all(Array.from({ length: clients }, (_, number) => client(number)))
  await delay(shortestLifeMs + Math.random() * (longestLifeMs - shortestLifeMs))
  const giveUpAtMs = performance.now() + deliveredWithinMs
  while (delivered.size < owed && performance.now() < giveUpAtMs) await delay(1)
  const killed = victim === 'service' ? killService(service, workers) : killWorker(service)
  if (victim === 'service') over.abort()
  const lastMarked = await killed
  over.abort()
  await all
  return { delivered, lastMarked }
}

function randomRequest(key: string): string {
  const stream = Math.random() < 0.6
  const content = 'x'.repeat(Math.floor(Math.random() * 400))
  return Math.random() < 0.5
    ? writePost('/chat/completions', key, {
        model: 'svc-router/frontier',
        stream,
        messages: [{ role: 'user', content }],
      })
    : writePost('/responses', key, { model: 'svc-router/frontier', stream, input: content })
}

/** Mostly fast and slow answers, and some failures before and after the first content. */
function randomSteps(): ScriptStep[] {
  return Array.from({ length: stepsPerProvider }, () => {
    const dice = Math.random()
    const tokenDelayMs = Math.random() < 0.6 ? 0 : Math.floor(Math.random() * 15)
    const ms = Math.floor(Math.random() * 250)
    const afterEvents = Math.floor(Math.random() * 9)
    if (dice < 0.62) return { do: 'answer', tokenDelayMs }
    if (dice < 0.72) return { do: 'slow_first', ms }
    if (dice < 0.8) return { do: 'slow_headers', ms }
    if (dice < 0.84) return { do: 'status', status: 503 }
    if (dice < 0.87) return { do: 'reset' }
    if (dice < 0.92) return { do: 'cut', afterEvents, by: Math.random() < 0.5 ? 'fin' : 'rst' }
    if (dice < 0.96) return { do: 'error_event', afterEvents }
    if (dice < 0.98) return { do: 'broken_first_event', with: 'error' }
    return { do: 'stall', afterEvents }
  })
}
