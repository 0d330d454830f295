import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { describe, expect, test, vi } from 'vitest'
import { FaultyBackends, healthyActs, textOf } from '../faults/matrix/faulty-backends.ts'
import { RawCaller, responsesIn } from '../faults/matrix/raw-caller.ts'
import { readAnswer } from '../faults/matrix/read-answer.ts'
import { bodyFor, paths } from '../faults/matrix/requests.ts'
import { clientFormats, type ClientFormat, type Mode } from '../faults/matrix/upstream-cells.ts'
import type { Act } from '../faults/matrix/upstream-faults.ts'
import { writePost } from '../faults/raw-client.ts'
import { ServiceProcess } from '../faults/service-process.ts'

/** What happens to the process. `SIGSTOP` lasts longer than the backend's timeouts. */
const signals = ['SIGTERM', 'SIGSTOP', 'SIGKILL'] as const
/** The phase of a request when it happens: not answered yet, in the middle of the answer, or completely answered. */
const phases = ['waiting', 'middle', 'answered'] as const

interface Cell {
  readonly signal: (typeof signals)[number]
  readonly phase: (typeof phases)[number]
  readonly client: ClientFormat
  readonly mode: Mode
}

/** What the client has read, and the record after the next start. */
interface Outcome {
  readonly answer: 'complete' | 'begun' | 'none'
  readonly state: 'done' | 'lost'
  readonly units: number
}

/** What the contract promises for a cell. */
function expectedOf({ signal, phase, mode }: Cell): Outcome {
  // Contract 32.6, 9.14, 6.4: a stop signal and a pause do not show.
  if (signal !== 'SIGKILL' || phase === 'answered') return { answer: 'complete', state: 'done', units: 1 }
  // Contract 6.13, 6.14, 28.7: what was delivered counts, and nothing else. A whole answer is delivered all at once.
  const isDelivered = phase === 'middle' && mode === 'stream'
  return { answer: isDelivered ? 'begun' : 'none', state: 'lost', units: isDelivered ? 1 : 0 }
}

/** Longer than it takes to bring all requests into their phases; the pause lasts longer still. */
const timeouts = { first_content: '12s', whole_answer: '12s', idle: '12s' }
const pauseMs = 14_000
/** Until the process has noticed the signal. */
const noticeMs = 300

function actsOf(phase: Cell['phase'], stream: boolean): readonly Act[] {
  const acts = healthyActs(stream)
  if (phase === 'answered') return acts
  const before = phase === 'waiting' ? 0 : stream ? 3 : 2
  return [...acts.slice(0, before), { released: true }, ...acts.slice(before)]
}

const cellsOf = (signal: Cell['signal']): Cell[] =>
  phases.flatMap((phase) =>
    clientFormats.flatMap((client) =>
      (['stream', 'whole'] as const).map((mode): Cell => ({ signal, phase, client, mode })),
    ),
  )

/** A service with one backend for each cell. */
async function startCells(cells: readonly Cell[], folder: string) {
  const backends = await Promise.all(
    cells.map(({ phase }) => FaultyBackends.start((_place, stream) => actsOf(phase, stream))),
  )
  const providers: Record<string, object> = {}
  const configured: Record<string, object> = {}
  const profiles: Record<string, object> = { 'svc-router/frontier': { backends: ['c0'] } }
  for (const [index, { client }] of cells.entries()) {
    const url = `http://127.0.0.1:${backends[index]!.port}/p0/v1`
    providers[`c${index}`] = { preset: 'custom', base_url: url, format: client }
    const limits = cells[index]!.signal === 'SIGSTOP' ? { timeouts: { ...timeouts } } : {}
    configured[`c${index}`] = { provider: `c${index}`, model: `model-${index}`, ...limits }
    profiles[`matrix/c${index}`] = { backends: [`c${index}`] }
  }
  const service = new ServiceProcess(folder, [], { providers, backends: configured, profiles })
  await service.start()
  return { service, backends }
}

/** Sends the request of a cell and waits until it is in its phase. */
async function reach(cell: Cell, index: number, service: ServiceProcess, backend: FaultyBackends): Promise<RawCaller> {
  const caller = new RawCaller(service.port)
  caller.send(writePost(paths[cell.client], service.key, bodyFor(cell, `matrix/c${index}`)))
  await vi.waitFor(() => expect(backend.calls[0]).toBe(1), 10_000)
  if (cell.phase === 'answered') await caller.until(() => responsesIn(caller.received).length === 1)
  if (cell.phase === 'middle' && cell.mode === 'stream') await caller.until(() => caller.received.includes('bravo'))
  return caller
}

/** As in `Outcome`, or what was received instead. */
function answerOf(cell: Cell, { received }: RawCaller): string {
  const [response] = responsesIn(received)
  if (response === undefined) return received.includes('bravo') ? 'begun' : received === '' ? 'none' : received
  const { end, text } = readAnswer(cell.client, cell.mode, response.status, response.body)
  return end === 'complete' && text === textOf(0) ? 'complete' : response.body
}

/** Sends the signal, and lets the backends continue. */
async function send(signal: Cell['signal'], service: ServiceProcess, release: () => void): Promise<void> {
  if (signal === 'SIGSTOP') {
    process.kill(service.running.pid!, 'SIGSTOP')
    release()
    await delay(pauseMs)
    process.kill(service.running.pid!, 'SIGCONT')
    return
  }
  const stopped = service.stop(signal)
  await delay(noticeMs)
  release()
  expect(await stopped).toBe(signal === 'SIGTERM' ? 0 : 'SIGKILL')
}

describe.concurrent('each request, at each phase, in each format', () => {
  test.for(signals)(
    'is answered and charged as promised after %s',
    { timeout: 120_000 },
    async (signal, { expect }) => {
      const folder = mkdtempSync(join(tmpdir(), 'svc-router-matrix-'))
      const cells = cellsOf(signal)
      const { service, backends } = await startCells(cells, folder)
      try {
        const callers: RawCaller[] = []
        // One after another, so that the records have the order of the cells.
        for (const [index, cell] of cells.entries()) callers.push(await reach(cell, index, service, backends[index]!))
        await send(signal, service, () => backends.forEach((backend) => backend.release()))
        await Promise.all(callers.map((caller) => caller.until(() => responsesIn(caller.received).length === 1)))
        if (signal === 'SIGSTOP') await service.stop('SIGTERM')
        await service.start()
        await vi.waitFor(
          () => expect(service.records().every(({ state }) => /done|lost/.test(state))).toBe(true),
          10_000,
        )
        const records = service.records()
        const seen = cells.map((cell, index) => {
          const { state, charged: units } = records[index]!
          return { ...cell, answer: answerOf(cell, callers[index]!), state, units }
        })
        expect(seen).toEqual(cells.map((cell) => ({ ...cell, ...expectedOf(cell) })))
        expect(service.usedUnits()).toBe(seen.reduce((sum, { units }) => sum + units, 0))
      } finally {
        await service.destroy()
        await Promise.all(backends.map((backend) => backend.close()))
        rmSync(folder, { recursive: true, force: true })
      }
    },
  )
})
