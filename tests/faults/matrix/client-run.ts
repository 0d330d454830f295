import { setTimeout as delay } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { vi } from 'vitest'
import { Service } from '../../service.ts'
import type { ClientCell } from './client-cells.ts'
import type { BackendBehavior, ClientAct } from './client-faults.ts'
import { expectedOfClient, type ClientResult } from './client-oracle.ts'
import { FaultyBackends, healthyActs } from './faulty-backends.ts'
import { RawCaller, responsesIn } from './raw-caller.ts'
import { readAnswer } from './read-answer.ts'
import { bodyFor, paths } from './requests.ts'
import type { Act } from './upstream-faults.ts'

const backendsOfCell = 3
/** How long a busy machine may take until a request's end is recorded and its calls are aborted. */
const settledWithinMs = 5_000
/** The cells that share a service: a configuration has at most 200 backends. */
const perService = 60

/** Runs the cells on real sockets. Returns one text for each cell that does not do what the contract promises. */
export async function runClientCells(cells: readonly ClientCell[]): Promise<string[]> {
  const problems: string[] = []
  for (let from = 0; from < cells.length; from += perService)
    problems.push(...(await runTogether(cells.slice(from, from + perService))))
  return problems
}

async function runTogether(cells: readonly ClientCell[]): Promise<string[]> {
  const backends = await Promise.all(
    cells.map(({ fault }) =>
      FaultyBackends.start((place, stream) => actsOf(fault.backends[place] ?? 'healthy', stream)),
    ),
  )
  const service = await Service.start({ formats: [], settings: settingsOf(cells, backends) })
  try {
    const runs = await Promise.all(
      cells.map((cell, index) => ClientRun.start({ service, cell, index, backends: backends[index]! })),
    )
    const results = await Promise.all(
      runs.map((run) => run.result().catch((error: unknown) => ({ threw: String(error) }))),
    )
    return results.flatMap((result, index) => differences(cells[index]!, result))
  } finally {
    await service.stop()
    await Promise.all(backends.map((one) => one.close()))
  }
}

function actsOf(behavior: BackendBehavior, stream: boolean): readonly Act[] | undefined {
  const answer = healthyActs(stream)
  if (behavior === 'silent') return []
  if (behavior === 'down') return [{ status: 503 }]
  if (behavior === 'paused') return answer.slice(0, stream ? 3 : 2)
  return behavior === 'slow' ? [{ waitMs: 200 }, ...answer] : undefined
}

function settingsOf(cells: readonly ClientCell[], scripted: readonly FaultyBackends[]): Record<string, unknown> {
  const providers: Record<string, object> = {}
  const backends: Record<string, object> = {}
  const profiles: Record<string, object> = {}
  for (const [index, { provider: format }] of cells.entries()) {
    const names = Array.from({ length: backendsOfCell }, (_, place) => `m${index}p${place}`)
    for (const [place, name] of names.entries()) {
      const url = `http://127.0.0.1:${scripted[index]!.port}/p${place}/v1`
      providers[name] = { preset: 'custom', base_url: url, format }
      backends[name] = { provider: name, model: `model-${name}` }
    }
    profiles[`matrix/c${index}`] = { backends: names }
  }
  profiles['svc-router/frontier'] = { backends: ['m0p0'] }
  return { providers, backends, profiles }
}

interface ClientRunOptions {
  readonly service: Service
  readonly cell: ClientCell
  readonly index: number
  readonly backends: FaultyBackends
}

/** One cell: what its client does, and later what became of it. */
class ClientRun {
  readonly #options: ClientRunOptions
  readonly #caller: RawCaller
  readonly #account: { readonly id: string; readonly key: string }
  readonly #request: string
  #sent = 0

  private constructor(options: ClientRunOptions, account: { readonly id: string; readonly key: string }) {
    this.#options = options
    this.#account = account
    this.#caller = new RawCaller(Number(new URL(options.service.origin).port))
    this.#request = this.#write()
  }

  /** Does what the client does. */
  static async start(options: ClientRunOptions): Promise<ClientRun> {
    const { account, key } = await options.service.addAccount(`client ${options.index}`, 'max')
    const run = new ClientRun(options, { id: account.id, key })
    for (const act of options.cell.fault.acts) await run.#act(act)
    run.#caller.close(options.cell.closing)
    return run
  }

  #write(): string {
    const { cell, index } = this.#options
    const { request = {} } = cell.fault
    const usual = JSON.stringify(bodyFor(cell, request.model ?? `matrix/c${index}`))
    const { body: other } = request
    const body = other === undefined ? usual : other.startsWith('{') ? other : `${usual.slice(0, -1)},${other}}`
    const key = request.key === 'none' ? '' : `authorization: Bearer ${this.#account.key}\r\n`
    return (
      `POST /v1${paths[cell.client]} HTTP/1.1\r\nhost: 127.0.0.1\r\nuser-agent: svc-router-tests/1.0\r\n${key}` +
      `content-type: application/json\r\ncontent-length: ${body.length}\r\n${request.headers ?? ''}\r\n${body}`
    )
  }

  async #act(act: ClientAct): Promise<void> {
    if ('send' in act) this.#send(act.send)
    else if ('waitMs' in act) await delay(act.waitMs)
    else if ('pauseMs' in act) {
      this.#caller.pause()
      await delay(act.pauseMs)
      this.#caller.resume()
    } else if ('close' in act) {
      if (act.close === 'sending') this.#caller.endSending()
      else this.#caller.close(this.#options.cell.closing)
    } else await this.#until(act.until)
  }

  #send(what: Extract<ClientAct, { send: string }>['send']): void {
    const request = this.#request
    const bodyAt = request.indexOf('\r\n\r\n') + 4
    const end = {
      'half-head': bodyAt / 2,
      'half-body': (bodyAt + request.length) / 2,
      rest: request.length,
      request: request.length,
    }
    if (what === 'two-requests') return this.#caller.send(request + request)
    this.#caller.send(request.slice(this.#sent, Math.floor(end[what])))
    this.#sent = Math.floor(end[what])
  }

  async #until(what: Extract<ClientAct, { until: unknown }>['until']): Promise<void> {
    const { backends, cell } = this.#options
    if (typeof what === 'number')
      await vi.waitFor(() => {
        if (backends.calls[what] === undefined) throw new Error(`backend ${what} was not called`)
      }, settledWithinMs)
    else if (what === 'content') await this.#caller.until(() => this.#caller.received.includes('bravo'))
    else {
      const { is } = cell.fault
      const count = is.is === 'served' ? is.times : 1
      await this.#caller.until(() => responsesIn(this.#caller.received).length >= count)
    }
  }

  /** What became of its requests. Call it once all cells have run. */
  async result(): Promise<ClientResult> {
    const { service, cell, backends } = this.#options
    const lines = () =>
      service.events.flatMap((event) =>
        event.event === 'request' && event.accountId === this.#account.id ? [event] : [],
      )
    const expected = expectedOfClient(cell)
    const read = () => service.store.listRequests({ accountId: this.#account.id, limit: 10 })
    await vi
      .waitFor(async () => {
        const isOver = lines().length >= expected.log.length && backends.unfinished === 0
        if (!isOver || (await read()).some(({ state }) => state !== 'done')) throw new Error('not settled')
      }, settledWithinMs)
      // What differs is reported with everything else.
      .catch(() => {})
    const records = await read()
    const counters = await service.post(
      '/route',
      { model: 'svc-router/frontier', messages: [] },
      { authorization: `Bearer ${this.#account.key}` },
    )
    const numberOf = (name: string): number => Number(counters.headers.get(name))
    return {
      answers: responsesIn(this.#caller.received).map(({ status, body }) => ({
        status,
        ...readAnswer(cell.client, cell.mode, status, body),
      })),
      attempts: records.map(({ attempts }) =>
        attempts.map(({ backend, outcome }) => `${backend.split('p')[1]} ${outcome}`),
      ),
      calls: [0, 1, 2].map((place) => backends.calls[place] ?? 0),
      unfinishedCalls: backends.unfinished,
      units: numberOf('x-quota-used'),
      minute: numberOf('x-ratelimit-limit') - numberOf('x-ratelimit-remaining'),
      log: lines().map(({ outcome, charged }) => `${outcome} ${charged}`),
    }
  }
}

function differences(cell: ClientCell, result: ClientResult | { readonly threw: string }): string[] {
  if ('threw' in result) return [`${cell.id}: ${result.threw}`]
  const wrong = Object.entries(expectedOfClient(cell)).filter(
    ([name, promised]) => !isDeepStrictEqual(result[name as keyof ClientResult], promised),
  )
  if (wrong.length === 0) return []
  const each = wrong.map(
    ([name, promised]) =>
      `${name} is ${JSON.stringify(result[name as keyof ClientResult])}, not ${JSON.stringify(promised)}`,
  )
  return [`${cell.id} (contract ${cell.fault.rows}): ${each.join('; ')}`]
}
