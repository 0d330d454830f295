import type {
  LoadWarning,
  ReplayFigure,
  ReplayFigureName,
  ReplayReport,
  ReplayShares,
  UnseenCalls,
} from '../../domain/replay.ts'
import { usageCostUsd, type FindPrice } from '../../domain/request-cost.ts'
import { resultOf } from '../../domain/requests.ts'
import type { RequestRecord } from '../../domain/requests.ts'
import { seededRandom } from '../fusion/engine/seeded-random.ts'
import { atLeastRare, changeIntervals, mean, quantile, type FigureOf, type OutcomePair } from './bootstrap.ts'
import { Observations, observationsOf, type Observation } from './observations.ts'
import { ReplayRun, type ReplayPolicy, type RunOutcome } from './replay-run.ts'
import { selectRecords, type ReplayableRecord } from './select-records.ts'

/** Each run gives other results to calls that were not made. */
const runs = 5
/** Fewer requests, or a shorter time, tell too little. */
const leastRequests = 200
const leastMs = 10 * 60_000
/** Requests that come within this time are resampled together. */
const shortestBlockMs = 60_000
const mostBlocks = 100
/** With more requests whose calls have unknown results, the records cannot tell. */
const mostUnseen = 0.02
/** Results that stand for more calls than this on average are too few. */
const mostBorrowed = 20
/** Backends with fewer borrowed results than this share of the requests do not matter. */
const fewBorrowed = 0.01
/** A backend with more than this many times the recorded open calls, and more than now, may be slower than recorded. */
const muchLoad = 1.5
/** The recorded figures may differ from those of the replayed configured policy by this share. */
const tolerance = 0.25

export interface ReplayInput {
  readonly profile: string
  /** Oldest first. */
  readonly records: readonly RequestRecord[]
  readonly configured: ReplayPolicy
  readonly policy: ReplayPolicy
  readonly priceOf: FindPrice
  readonly seed: number
  /** Whether backends are assumed to answer any number of open calls as fast as the recorded ones. */
  readonly assumesCapacity: boolean
}

const figures: Readonly<Record<ReplayFigureName, FigureOf>> = {
  cost_usd: (outcomes) => mean(outcomes.flatMap(({ costUsd }) => (costUsd === undefined ? [] : [costUsd]))),
  failed: (outcomes) => mean(outcomes.map(({ failed }) => Number(failed))),
  first_content_p50_ms: (outcomes) => quantile(waitsOf(outcomes), 0.5),
  first_content_p95_ms: (outcomes) => quantile(waitsOf(outcomes), 0.95),
  calls: (outcomes) => mean(outcomes.map(({ calls }) => calls)),
}
const figureNames = Object.keys(figures) as ReplayFigureName[]
/** Figures that depend on how many calls a backend has open. */
const loadFigures: readonly ReplayFigureName[] = ['failed', 'first_content_p50_ms', 'first_content_p95_ms', 'calls']

/**
 * Runs recorded requests through the configured policy and another one, and compares both (contract 33.12). The
 * configured policy is replayed too, so that what a replay gets wrong affects both sides alike. See decision 59.
 */
export function replay(input: ReplayInput): ReplayReport {
  const { profile, records, seed, priceOf } = input
  const { replayable, observed, leftOut } = selectRecords(records)
  const fromMs = replayable[0]?.record.admittedAtMs ?? 0
  const untilMs = replayable.at(-1)?.record.admittedAtMs ?? 0
  const about = { profile, records: records.length, requests: replayable.length, fromMs, untilMs, leftOut }
  if (replayable.length < leastRequests || untilMs - fromMs < leastMs)
    return { ...about, ...nothingTold, tooLittle: { leastRequests, leastMs } }
  const seen = observed.flatMap(({ record, kind }) => observationsOf(record, kind))
  const observations = new Observations(seen)
  const pairs = Array.from({ length: runs }, (_, run) => {
    const options = { seed: seed + run, priceOf }
    const configured = new ReplayRun(replayable, observations, input.configured, options).run()
    return { configured, policy: new ReplayRun(replayable, observations, input.policy, options).run() }
  })
  const unseenShare = mean(pairs.map(({ configured, policy }) => unseenIn(configured, policy))) / replayable.length
  const unseen = unseenCalls(
    pairs.flatMap(({ configured, policy }) => [configured, policy]),
    observations,
  )
  const rare = rareBackends(
    pairs.map(({ policy }) => policy),
    replayable.length,
  )
  if (unseenShare > mostUnseen || rare.length > 0)
    return { ...about, ...nothingTold, unseenShare, unseen: [...unseen, ...rare] }
  const loads = loadWarnings(pairs, seen)
  return { ...about, ...told(replayable, pairs, input, loads.length > 0), unseenShare, unseen, loads }
}

type RunPair = { readonly configured: ReplayRun; readonly policy: ReplayRun }

const nothingTold = {
  canTell: false,
  tooLittle: undefined,
  unseenShare: 0,
  unseen: [],
  shares: [],
  figures: [],
  loads: [],
  unpriced: [],
  recordedOtherwise: false,
} as const

function told(
  replayable: readonly ReplayableRecord[],
  pairs: readonly RunPair[],
  { priceOf, seed, assumesCapacity }: ReplayInput,
  isLoaded: boolean,
): Pick<ReplayReport, 'canTell' | 'tooLittle' | 'shares' | 'figures' | 'unpriced' | 'recordedOtherwise'> {
  const blocks = pairs.map((pair) => blocksOf(replayable, pair))
  const known = pairs.map(({ configured, policy }) => ({
    configured: configured.outcomes.filter((one) => one !== undefined),
    policy: policy.outcomes.filter((one) => one !== undefined),
  }))
  const recorded = replayable.map(({ record }) => recordedOutcome(record, priceOf))
  const random = seededRandom(seed)
  const changes = changeIntervals(
    blocks,
    figureNames.map((name) => figures[name]),
    random,
  )
  const found = figureNames.map((name, index): ReplayFigure => {
    const figureOf = figures[name]
    const change = changes[index]
    return {
      name,
      recorded: orNull(figureOf(recorded)),
      configured: orNull(mean(known.map(({ configured }) => figureOf(configured)))),
      policy: orNull(mean(known.map(({ policy }) => figureOf(policy)))),
      change: change === undefined ? null : name === 'failed' ? atLeastRare(change, replayable.length) : change,
    }
  })
  const backends = known.flatMap(({ configured, policy }) =>
    [...configured, ...policy, ...recorded].map(({ backend }) => backend),
  )
  const named = [...new Set(backends.filter((backend) => backend !== undefined))].toSorted()
  const unpriced = named.filter((backend) => priceOf(backend) === undefined)
  return {
    canTell: true,
    tooLittle: undefined,
    shares: named.map((backend): ReplayShares => ({
      backend,
      recorded: shareOf(recorded, backend),
      configured: mean(known.map(({ configured }) => shareOf(configured, backend))),
      policy: mean(known.map(({ policy }) => shareOf(policy, backend))),
    })),
    figures: found.map((figure) => {
      const isUnpriced = figure.name === 'cost_usd' && unpriced.length > 0
      const isUncertain = isLoaded && !assumesCapacity && loadFigures.includes(figure.name)
      return isUnpriced || isUncertain ? { ...figure, policy: null, change: null } : figure
    }),
    unpriced,
    recordedOtherwise: found.some(
      ({ name, recorded: was, configured }) =>
        name.startsWith('first_content') &&
        was !== null &&
        configured !== null &&
        Math.abs(was - configured) > tolerance * was,
    ),
  }
}

/** The pairs of outcomes of one run, in blocks of time. Requests with an unknown result are left out. */
function blocksOf(replayable: readonly ReplayableRecord[], { configured, policy }: RunPair): OutcomePair[][] {
  const fromMs = replayable[0]!.record.admittedAtMs
  const spanMs = replayable.at(-1)!.record.admittedAtMs - fromMs
  const blockMs = Math.max(shortestBlockMs, spanMs / mostBlocks)
  const blocks: OutcomePair[][] = Array.from({ length: Math.floor(spanMs / blockMs) + 1 }, () => [])
  for (const [index, { record }] of replayable.entries()) {
    const pair = { configured: configured.outcomes[index], policy: policy.outcomes[index] }
    if (pair.configured === undefined || pair.policy === undefined) continue
    blocks[Math.floor((record.admittedAtMs - fromMs) / blockMs)]!.push(pair as OutcomePair)
  }
  return blocks
}

/** What the answer of a request without fusion cost, at the same prices as a replayed one. */
function recordedCostUsd({ usage, attempts, fusions }: RequestRecord, priceOf: FindPrice): number | undefined {
  const backend = attempts.at(-1)?.backend
  const price = backend === undefined || fusions !== undefined ? undefined : priceOf(backend)
  return usage === undefined || price === undefined ? undefined : usageCostUsd(price, usage)
}

function recordedOutcome(record: RequestRecord, priceOf: FindPrice): RunOutcome {
  const { attempts, firstContentMs } = record
  const answer = attempts.findLast(({ outcome }) => outcome === 'answered')
  return {
    failed: resultOf(record) === 'failed',
    firstContentMs: answer === undefined ? undefined : firstContentMs,
    costUsd: answer === undefined ? 0 : recordedCostUsd(record, priceOf),
    calls: attempts.length,
    backend: answer?.backend,
  }
}

function unseenIn(configured: ReplayRun, policy: ReplayRun): number {
  return configured.outcomes.filter((one, index) => one === undefined || policy.outcomes[index] === undefined).length
}

function unseenCalls(all: readonly ReplayRun[], observations: Observations): UnseenCalls[] {
  const counts = new Map<string, UnseenCalls>()
  for (const { unseen } of all) {
    for (const { backend, kind, position } of unseen) {
      const why = observations.whyUnseen(backend, kind, position)
      const requests = (counts.get(`${backend} ${why}`)?.requests ?? 0) + 1 / runs
      counts.set(`${backend} ${why}`, { backend, why, requests })
    }
  }
  return [...counts.values()].toSorted((a, b) => b.requests - a.requests)
}

function rareBackends(all: readonly ReplayRun[], requests: number): UnseenCalls[] {
  const names = new Set(all.flatMap(({ borrowed }) => [...borrowed.keys()]))
  return [...names].flatMap((backend): UnseenCalls[] => {
    const calls = mean(all.map(({ borrowed }) => borrowed.get(backend)?.calls ?? 0))
    const results = mean(all.map(({ borrowed }) => borrowed.get(backend)?.results.size ?? 0))
    const isRare = calls > requests * fewBorrowed && calls > results * mostBorrowed
    return isRare ? [{ backend, why: 'rarely', requests: calls }] : []
  })
}

function loadWarnings(pairs: readonly RunPair[], seen: readonly Observation[]): LoadWarning[] {
  const recorded = openCallsOf(seen)
  const names = new Set(pairs.flatMap(({ policy }) => [...policy.openCalls.keys()]))
  return [...names].flatMap((backend): LoadWarning[] => {
    const openIn = (runs: readonly ReplayRun[]): number =>
      Math.round(mean(runs.map(({ openCalls }) => openCalls.get(backend) ?? 0)))
    const openCalls = openIn(pairs.map(({ policy }) => policy))
    const configured = openIn(pairs.map((pair) => pair.configured))
    const recordedOpenCalls = recorded.get(backend) ?? 0
    return openCalls > Math.max(recordedOpenCalls * muchLoad, configured)
      ? [{ backend, openCalls, recordedOpenCalls }]
      : []
  })
}

/** The most calls that were open at the same time, by backend. */
function openCallsOf(seen: readonly Observation[]): ReadonlyMap<string, number> {
  const events = seen.flatMap(({ backend, atMs, ms, restMs }) => [
    { backend, atMs, step: 1 },
    { backend, atMs: atMs + ms + restMs, step: -1 },
  ])
  events.sort((a, b) => a.atMs - b.atMs)
  const open = new Map<string, number>()
  const most = new Map<string, number>()
  for (const { backend, step } of events) {
    const now = (open.get(backend) ?? 0) + step
    open.set(backend, now)
    most.set(backend, Math.max(now, most.get(backend) ?? 0))
  }
  return most
}

function shareOf(outcomes: readonly RunOutcome[], backend: string): number {
  return outcomes.filter((one) => one.backend === backend).length / outcomes.length
}

function waitsOf(outcomes: readonly RunOutcome[]): number[] {
  return outcomes.flatMap(({ firstContentMs }) => (firstContentMs === undefined ? [] : [firstContentMs]))
}

function orNull(value: number): number | null {
  return Number.isFinite(value) ? value : null
}
