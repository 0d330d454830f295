import type { ReplayFigureName, ReplayReport } from '../../src/domain/replay.ts'
import { usageCostUsd } from '../../src/domain/request-cost.ts'
import { resultOf, type RequestRecord } from '../../src/domain/requests.ts'
import { routingFor, type RoutingPolicy } from '../../src/domain/routing-policy.ts'
import type { Backend } from '../../src/gateway/ports.ts'
import { replay } from '../../src/gateway/replay/replay.ts'
import { someBackend } from '../gateway/routing/some-backend.ts'
import { poisson, quantile, RoutingWorld, unsteadyBackends, type SimulatedBackend } from './routing-world.ts'
import { timeouts } from './simulated-gateway.ts'

/** US dollars per million tokens of the simulated backends, by ID. */
const prices = ['b0', 'b1', 'b2', 'b3', 'b4']
const priceOf = (id: string): { input: number; output: number } | undefined => {
  const index = prices.indexOf(id)
  return index < 0 ? undefined : { input: 1 + index, output: 4 + 4 * index }
}

/** What really happens under a policy. */
export type Truth = Readonly<Record<ReplayFigureName, number>>

export interface ReplayExperiment {
  readonly seed: number
  readonly seconds: number
  readonly perSecond: number
  readonly recordedUnder: RoutingPolicy
  readonly replayedUnder: RoutingPolicy
  readonly assumesCapacity?: boolean
  readonly backends?: (seed: number, untilMs: number) => SimulatedBackend[]
}

/** Records under one policy, replays another one, and runs that one really with the same requests and response times. */
export async function replayAndRun(experiment: ReplayExperiment): Promise<{ report: ReplayReport; truth: Truth }> {
  const { recordedUnder, replayedUnder } = experiment
  const records = await recordsUnder(experiment, recordedUnder)
  const report = replayOf(experiment, records)
  const [before, after] = [figuresOf(records), figuresOf(await recordsUnder(experiment, replayedUnder))]
  const names = Object.keys(before) as ReplayFigureName[]
  return { report, truth: Object.fromEntries(names.map((name) => [name, after[name] - before[name]])) as Truth }
}

export function replayOf(
  {
    seed,
    seconds,
    recordedUnder,
    replayedUnder,
    backends = unsteadyBackends,
    assumesCapacity = false,
  }: ReplayExperiment,
  records: readonly RequestRecord[],
): ReplayReport {
  const served: readonly Backend[] = backends(seed, seconds * 1000).map(({ id, failureDomain }) =>
    someBackend(id, { failureDomain, timeouts, ...(priceOf(id) && { usdPerMillion: priceOf(id)! }) }),
  )
  const policyOf = (routing: RoutingPolicy) => ({ routing: routingFor(routing, undefined), backendsFor: () => served })
  const [configured, policy] = [policyOf(recordedUnder), policyOf(replayedUnder)]
  return replay({ profile: 'p', records, configured, policy, priceOf, seed: 1, assumesCapacity })
}

export async function recordsUnder(
  { seed, seconds, perSecond, backends = unsteadyBackends }: ReplayExperiment,
  routing: RoutingPolicy,
): Promise<readonly RequestRecord[]> {
  const priced = backends(seed, seconds * 1000).map((one) => ({ ...one, usdPerMillion: priceOf(one.id) }))
  const world = new RoutingWorld(seed, routing, priced)
  await world.run(poisson(seed, perSecond, 0, seconds * 1000))
  return world.records
}

/** The figures of real requests, without the code that is tested. */
function figuresOf(records: readonly RequestRecord[]): Truth {
  const waits = records.flatMap(({ firstContentMs, attempts }) =>
    firstContentMs !== undefined && attempts.at(-1)?.outcome === 'answered' ? [firstContentMs] : [],
  )
  let [cost, calls, failed] = [0, 0, 0]
  for (const record of records) {
    calls += record.attempts.length
    failed += Number(resultOf(record) === 'failed')
    const { usage } = record
    if (usage === undefined) continue
    for (const { backend, outcome } of record.attempts) {
      if (outcome === 'answered') cost += usageCostUsd(priceOf(backend)!, usage)
      else if (outcome === 'cancelled') cost += (priceOf(backend)!.input * usage.inputTokens) / 1e6
    }
  }
  return {
    cost_usd: cost / records.length,
    failed: failed / records.length,
    first_content_p50_ms: quantile(waits, 0.5),
    first_content_p95_ms: quantile(waits, 0.95),
    calls: calls / records.length,
  }
}
