import { hasPostgres, startPostgres, type TestPostgres } from '../../tests/postgres.ts'
import type { Bench } from '../bench.ts'
import type { Gateway } from '../gateways.ts'
import { type Contender, enterOne, maxRequestsPerRun, measure } from '../rounds.ts'
import { compare } from '../rows.ts'
import type { Row } from '../rows.ts'

const counts = [1, 2, 4] as const
const controlCounts = [2, 4] as const
/** As many for each worker, so that each has as much to do as one alone. */
const connectionsPerWorker = 64
const aimAtMost = 1.1
const mode = { name: 'whole', bodyBytes: 1024 } as const
const labelOf = (count: number): string => `svc-router, ${count} ${count === 1 ? 'worker' : 'workers'}`
const controlLabelOf = (count: number): string => `control, ${count} services`

/**
 * CPU per request with one, two, and four workers, the sum of all their processes: they share one core here, so the
 * figure is what they cost, not how fast they are. As many independent services with one process each are the control:
 * processes that share a core take more CPU, although they have nothing to do with each other.
 */
export async function measureWorkers(bench: Bench): Promise<Row[]> {
  const { store } = bench.options
  if (store === 'postgres' && !hasPostgres('the scenario workers')) throw new Error('no PostgreSQL server was found')
  const postgres = store === 'postgres' ? await startPostgres({ durable: true }) : undefined
  const gateways: Gateway[] = []
  try {
    const contenders: Contender[] = []
    for (const count of counts) {
      const contender = await startWorkers(bench, count, postgres)
      if (contender === undefined) continue
      gateways.push(contender.gateway)
      contenders.push(contender)
    }
    for (const count of controlCounts) {
      const contender = await startControl(bench, count, gateways, postgres)
      if (contender !== undefined) contenders.push(contender)
    }
    const { rounds, runMs } = bench.options
    const load = { rounds, connections: connectionsPerWorker, maxRequests: maxRequestsPerRun, durationMs: runMs }
    const comparison = await measure(bench, contenders, { scenario: 'workers', ...load })
    const reference = labelOf(1)
    const figure = 'CPU µs/request'
    const only = (labels: readonly string[]) =>
      new Map([...comparison.values].filter(([label]) => labels.includes(label)))
    const relativeTo = (other: string, labels: readonly string[], aim: { aimOthersAtMost?: number } = {}): Row[] => {
      const values = only([other, ...labels])
      const rows = compare({ ...comparison, figure, values, reference: other, ...aim })
      return rows.filter(({ gateway }) => gateway !== other)
    }
    return [
      ...compare({ ...comparison, figure, values: only(counts.map(labelOf)), reference, aimOthersAtMost: aimAtMost }),
      ...relativeTo(reference, controlCounts.map(controlLabelOf)),
      ...controlCounts.flatMap((count) =>
        relativeTo(controlLabelOf(count), [labelOf(count)], { aimOthersAtMost: aimAtMost }),
      ),
      ...compare({
        ...comparison,
        figure: 'database CPU µs/request',
        values: comparison.databaseValues,
        reference,
        remarks: new Map(),
      }),
    ]
  } finally {
    await Promise.all(gateways.map((gateway) => gateway.stop()))
    await postgres?.stop()
  }
}

/** Starts independent services, and adds them to `gateways`. */
async function startControl(
  bench: Bench,
  count: number,
  gateways: Gateway[],
  postgres: TestPostgres | undefined,
): Promise<Contender | undefined> {
  const services: Gateway[] = []
  for (let index = 0; index < count; index++) {
    const database = postgres && { databaseUrl: await postgres.createDatabase() }
    const service = await bench.startFresh('svc-router', { workers: 1, ...database })
    gateways.push(service)
    services.push(service)
  }
  const [gateway, ...besides] = services
  return await enterOne(bench, 'workers', {
    label: controlLabelOf(count),
    gateway: gateway!,
    besides,
    ...loadOf(count),
    ...(postgres && { databasePid: postgres.pid }),
  })
}

/** Each process answers as many requests in a round as one alone: what it does once counts the same. */
function loadOf(count: number) {
  const connections = connectionsPerWorker * count
  return { kind: 'chat', mode, warm: true, warmUps: count, connections, times: count } as const
}

async function startWorkers(
  bench: Bench,
  count: number,
  postgres: TestPostgres | undefined,
): Promise<Contender | undefined> {
  const database = postgres && { databaseUrl: await postgres.createDatabase() }
  const gateway = await bench.startFresh('svc-router', { workers: count, ...database })
  const contender = await enterOne(bench, 'workers', {
    label: labelOf(count),
    gateway,
    ...loadOf(count),
    ...(postgres && { databasePid: postgres.pid }),
  })
  if (contender === undefined) await gateway.stop()
  return contender
}
