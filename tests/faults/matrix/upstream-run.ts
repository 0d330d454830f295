import { isDeepStrictEqual } from 'node:util'
import type { ServiceEvent } from '../../../src/domain/events.ts'
import { Service } from '../../service.ts'
import { recordOf } from '../event-stream.ts'
import { FaultyBackends } from './faulty-backends.ts'
import { readAnswer } from './read-answer.ts'
import { bodyFor, paths } from './requests.ts'
import type { StrangeServers } from './strange-servers.ts'
import type { UpstreamCell } from './upstream-cells.ts'
import { secretText } from './upstream-faults.ts'
import { expectedOf, type CellResult } from './upstream-oracle.ts'

const servicesAtOnce = 3
/** Cells of one service that run at the same time. Most of them wait. */
const atOnce = 12
/** The backends that one configuration may have. Cells share a service, but no backend, profile, or account. */
const backendsOfService = 200
/** Cells of one service that call a backend again: all accounts together have 25 retries that they have not earned (contract 7.31). */
const repeatsOfService = 20

/** Runs the cells on real sockets. Returns one text for each cell that does not do what the contract promises. */
export async function runUpstreamCells(cells: readonly UpstreamCell[], strange: StrangeServers): Promise<string[]> {
  const problems: string[] = []
  const waiting = groupsOf(cells).values()
  const work = async (): Promise<void> => {
    for (const group of waiting) problems.push(...(await runTogether(group, strange)))
  }
  await Promise.all(Array.from({ length: servicesAtOnce }, work))
  return problems
}

function groupsOf(cells: readonly UpstreamCell[]): UpstreamCell[][] {
  const groups: UpstreamCell[][] = []
  let left = 0
  let repeatsLeft = 0
  for (const cell of cells) {
    const repeats = callsAgain(cell) ? 1 : 0
    if (cell.backends > left || repeats > repeatsLeft) {
      groups.push([])
      left = backendsOfService
      repeatsLeft = repeatsOfService
    }
    groups.at(-1)!.push(cell)
    left -= cell.backends
    repeatsLeft -= repeats
  }
  return groups
}

function callsAgain(cell: UpstreamCell): boolean {
  const { attempts } = expectedOf(cell)
  return new Set(attempts.map((attempt) => attempt.split(' ')[0])).size < attempts.length
}

async function runTogether(cells: readonly UpstreamCell[], strange: StrangeServers): Promise<string[]> {
  const backends = await Promise.all(
    cells.map((cell) =>
      FaultyBackends.start((place, stream) =>
        place < cell.faulty ? cell.fault[stream ? 'stream' : 'whole']?.acts : undefined,
      ),
    ),
  )
  const service = await Service.start({ formats: [], settings: settingsOf(cells, backends, strange) })
  const problems: string[] = []
  try {
    // First, because each new account makes the service look up every key again.
    const keys: string[] = []
    for (const index of cells.keys()) keys.push((await service.addAccount(`cell ${index}`, 'max')).key)
    const waiting = cells.entries()
    const work = async (): Promise<void> => {
      for (const [index, cell] of waiting) {
        const result = await observe(service, cell, index, keys[index]!).catch((error: unknown) => ({
          threw: String(error),
        }))
        problems.push(...differences(cell, result))
      }
    }
    await Promise.all(Array.from({ length: atOnce }, work))
    const logged = JSON.stringify(service.events)
    if (logged.includes(secretText)) problems.push("the log contains a provider's text (contract 28.2)")
  } finally {
    await service.stop()
    await Promise.all(backends.map((one) => one.close()))
  }
  return problems
}

const backendName = (index: number, place: number): string => `m${index}p${place}`
const placeOf = (name: string | null | undefined): number | undefined =>
  name == null ? undefined : Number(/p(\d+)$/.exec(name)?.[1])

function settingsOf(
  cells: readonly UpstreamCell[],
  scripted: readonly FaultyBackends[],
  strange: StrangeServers,
): Record<string, unknown> {
  const providers: Record<string, object> = {}
  const backends: Record<string, object> = {}
  const profiles: Record<string, object> = {}
  for (const [index, cell] of cells.entries()) {
    const { fault, faulty, provider: format } = cell
    const names = Array.from({ length: cell.backends }, (_, place) => backendName(index, place))
    for (const [place, name] of names.entries()) {
      const isFaulty = place < faulty
      const origin = `http://127.0.0.1:${scripted[index]!.port}`
      const address = isFaulty && fault.address !== undefined ? strange.origin(fault.address, origin) : origin
      providers[name] = { preset: 'custom', base_url: `${address}/p${place}/v1`, format }
      const timeouts = isFaulty && fault.timeouts !== undefined ? { timeouts: { ...fault.timeouts } } : {}
      backends[name] = {
        provider: name,
        model: format === 'gemini' ? `gemini-3-${name}` : `model-${name}`,
        ...timeouts,
      }
    }
    profiles[`matrix/c${index}`] = { backends: names }
  }
  profiles['svc-router/frontier'] = { backends: [backendName(0, 0)] }
  return { providers, backends, profiles }
}

interface Route {
  readonly left_out: readonly { readonly backend: string; readonly reason: string; readonly until: number | null }[]
}

/** Sends the cell's request and reads what it did, from outside and from the records. */
async function observe(service: Service, cell: UpstreamCell, index: number, key: string): Promise<CellResult> {
  const model = `matrix/c${index}`
  const authorization = `Bearer ${key}`
  const body = bodyFor(cell, model)
  const ask = (): Promise<Response> => service.post(paths[cell.client], body, { authorization })
  const isWarm = cell.is.is === 'answer' && cell.is.warm === true
  if (isWarm) await (await ask()).text()

  const response = await ask()
  const answer = readAnswer(cell.client, cell.mode, response.status, await response.text())
  const { headers } = response
  const route = await service.post('/route', { ...bodyFor(cell, model), stream: false }, { authorization })
  if (route.status !== 200) throw new Error(`The route was not explained: ${route.status} ${await route.text()}`)
  const { left_out: leftOut } = (await route.json()) as Route
  const requestId = headers.get('x-request-id') ?? ''
  const record = await recordOf(service, requestId)
  const counters = (await service.post('/route', body, { authorization })).headers

  const of = backendName(index, 0).slice(0, -1)
  const own = service.events.filter((event) => 'backend' in event && event.backend.startsWith(of))
  const line = service.events.find((event) => event.event === 'request' && event.requestId === requestId)
  if (line?.event !== 'request') throw new Error('The request was not logged.')
  const earlier = isWarm ? 1 : 0
  const opened = own.flatMap((event) =>
    event.event === 'backend_down' ? [`${placeOf(event.backend)} ${event.reason}`] : [],
  )
  const retryAfter = headers.get('retry-after')
  const shouldRetry = headers.get('x-should-retry')
  return {
    status: response.status,
    end: answer.end as CellResult['end'],
    code: answer.code,
    text: answer.text,
    upstream: placeOf(headers.get('x-svc-router-upstream')),
    retryCount: Number(headers.get('x-svc-router-retry-count') ?? Number.NaN),
    retryAfter: retryAfter === null ? undefined : Number(retryAfter),
    mayRetry: shouldRetry === null ? undefined : shouldRetry === 'true',
    attempts: record.attempts.map(({ backend, outcome }) => `${placeOf(backend)!} ${outcome}` as const),
    units: Number(counters.get('x-quota-used')) - earlier,
    minute: Number(counters.get('x-ratelimit-limit')) - Number(counters.get('x-ratelimit-remaining')) - earlier,
    opened: opened as CellResult['opened'],
    openSeconds: openSecondsOf(leftOut),
    log: {
      outcome: line.outcome,
      attempts: line.attempts,
      charged: line.charged,
      failed: line.failed?.map((name) => placeOf(name)!),
      events: own.flatMap((event) => (isOfConfiguration(event) ? [`${event.event} ${placeOf(event.backend)}`] : [])),
    },
  }
}

function isOfConfiguration(
  event: ServiceEvent,
): event is Extract<ServiceEvent, { event: 'upstream_credentials_rejected' | 'upstream_not_found' }> {
  return event.event === 'upstream_credentials_rejected' || event.event === 'upstream_not_found'
}

/** The longest time for which a backend is left out because of its breaker. */
function openSecondsOf(leftOut: Route['left_out']): number | undefined {
  const open = leftOut.filter(({ reason }) => reason === 'rate' || reason === 'credentials')
  const seconds = open.map(({ until }) => (until ?? 0) - Date.now() / 1000)
  return seconds.length === 0 ? undefined : Math.max(...seconds)
}

/** How late a busy machine may read a time that is running out, seconds. */
const latenessSeconds = 4

function differences(cell: UpstreamCell, result: CellResult | { readonly threw: string }): string[] {
  const expected = expectedOf(cell)
  if ('threw' in result) return [`${cell.id}: ${result.threw}`]
  const isOfTime = (name: string): boolean => name === 'retryAfter' || name === 'openSeconds'
  const wrong = Object.entries(expected).filter(([name, promised]) => {
    const seen: unknown = result[name as keyof CellResult]
    if (typeof promised === 'number' && typeof seen === 'number' && isOfTime(name))
      return seen > promised + 1 || seen < Math.max(0, promised - latenessSeconds)
    // Less than the shortest time that is observed reliably.
    if (name === 'openSeconds' && promised === undefined && typeof seen === 'number') return seen > 2
    return !isDeepStrictEqual(seen, promised)
  })
  if (wrong.length === 0) return []
  const each = wrong.map(
    ([name, promised]) =>
      `${name} is ${JSON.stringify(result[name as keyof CellResult])}, not ${JSON.stringify(promised)}`,
  )
  return [`${cell.id} (contract ${cell.fault.rows}): ${each.join('; ')}`]
}
