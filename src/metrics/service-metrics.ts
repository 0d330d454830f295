import { type Aggregator, collectDefaultMetrics, Counter, Gauge, Registry } from '@prometheus-io/client'
import type { BackendState } from '../domain/backend-state.ts'
import { type ServiceEvent, type ShedLoad, shedLoads } from '../domain/events.ts'
import { requestFormatIds } from '../domain/format-id.ts'
import {
  brokenBackend,
  type RequestOpening,
  type RequestOutcome,
  requestResults,
  rescueOf,
  resultOf,
} from '../domain/requests.ts'
import type { RequestObserver } from '../gateway/ports.ts'
import { accountBackendLabel, attemptOutcomes, errorLabels, failingParts, Labels } from './labels.ts'
import { TallyHistogram } from './tally-histogram.ts'
import { Tally, type TallyOptions } from './tally.ts'

/** Upper bounds of the histograms, seconds: the limits of contract 9 and of single-digit waits. */
const answerBuckets = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 120, 300, 600]
const storeBuckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25]

const backendStates: readonly BackendState['state'][] = ['closed', 'half_open', 'open', 'drained', 'quarantined']

/** How the gauges of several workers become one, if not as their sum (contract 36.9). */
const aggregators: Readonly<Record<string, Aggregator>> = {
  build_info: 'first',
  ready: 'min',
  settings_applied: 'min',
  backend_state: 'max',
  load_shedding: 'max',
}

/** A shared resource: how much is used, its limit, and how often a holder was refused more. */
interface ShareFigures {
  readonly used: number
  readonly limit: number
  readonly rejected: number
}

/** What is read from the service when the metrics are. */
export interface MetricsSources {
  readonly ready: () => boolean
  readonly areSettingsApplied: () => boolean
  readonly stateOf: (backendId: string) => BackendState['state']
  readonly sheds: (kind: ShedLoad) => boolean
  readonly shares: () => Readonly<Record<string, ShareFigures>>
  readonly queues: () => Readonly<Record<string, number>>
}

export interface ServiceMetricsOptions {
  readonly version: string
  /** These two may grow while the service runs. */
  readonly profiles: readonly string[]
  readonly backends: readonly string[]
}

/**
 * The metrics of one process (contract 28.13). Labels come from fixed lists; no metric has text or an account. Counters
 * that alerts use start at 0, so that their first increase is seen.
 */
export class ServiceMetrics implements RequestObserver {
  readonly registry = new Registry()
  readonly #labels: Labels
  readonly #options: ServiceMetricsOptions
  #sources: MetricsSources | undefined

  readonly #admissions = this.#tally('admissions_total', 'Admitted requests.', ['profile'])
  readonly #requests = this.#tally('requests_total', 'Admitted requests that ended, by result.', ['profile', 'result'])
  readonly #outcomes = this.#tally('request_outcomes_total', 'Admitted requests that ended, by outcome.', [
    'format',
    'outcome',
  ])
  readonly #refusals = this.#tally('refusals_total', 'Requests rejected before admission, by error code.', ['code'])
  readonly #failovers = this.#tally('failovers_total', 'Requests answered after at least one backend failed.', [
    'profile',
  ])
  readonly #rescues = this.#tally('rescues_total', 'Streams that another backend continued after they broke off.', [
    'profile',
    'seam',
  ])
  readonly #units = this.#tally('charged_units_total', 'Units of monthly quotas that were charged.', ['profile'])
  readonly #attempts = this.#tally('attempts_total', 'Calls to backends, by outcome.', ['backend', 'outcome'])
  readonly #tokens = this.#tally('tokens_total', 'Tokens of answers, by kind.', ['backend', 'kind'])
  readonly #failures = this.#tally('failures_total', 'Failures that a component reported.', ['part'])
  readonly #uncounted = this.#counter('delivered_uncounted_total', 'Delivered answers without a charge. Always 0.', [])
  readonly #open = { stream: 0, whole: 0 }
  readonly #firstContent = this.#histogram(
    'first_content_seconds',
    'Time from admission to the first content of a stream.',
    'profile',
    answerBuckets,
  )
  readonly #backendFirstContent = this.#histogram(
    'backend_first_content_seconds',
    'Time from a call to the first content of its stream.',
    'backend',
    answerBuckets,
  )
  readonly #duration = this.#histogram(
    'request_seconds',
    'Time from admission to the end of an answered request.',
    'profile',
    answerBuckets,
  )
  readonly #store = this.#histogram('store_seconds', 'The duration of database operations.', 'operation', storeBuckets)

  constructor(options: ServiceMetricsOptions) {
    this.#options = options
    this.#labels = new Labels(
      () => options.profiles,
      () => options.backends,
    )
    this.#initialize()
    this.#addGauges()
    collectDefaultMetrics({ register: this.registry })
  }

  /** Sets what the gauges read. Until then they have no values. */
  watch(sources: MetricsSources): void {
    this.#sources = sources
  }

  /** Counts an admitted request. */
  admitted({ profile, stream }: RequestOpening): void {
    this.#admissions.inc(this.#labels.profile(profile))
    this.#open[stream ? 'stream' : 'whole'] += 1
  }

  /** Counts the end of an admitted request. */
  settled({ stream }: RequestOpening): void {
    this.#open[stream ? 'stream' : 'whole'] -= 1
  }

  /** Counts an answer that was delivered, but not charged or not durable. */
  deliveredUncounted(): void {
    this.#uncounted.inc()
  }

  /** Measures the store. `operation`: `commit`, `admit`, or `poll`. */
  stored(operation: 'admit' | 'commit' | 'poll', ms: number): void {
    this.#store.observe(operation, ms / 1000)
  }

  /** Counts a rejected request. */
  refused(code: string): void {
    this.#refusals.inc(this.#labels.error(code))
  }

  /** Counts a failure that a component logged. */
  note({ event }: ServiceEvent): void {
    const part = this.#labels.part(event)
    if (part !== undefined) this.#failures.inc(part)
  }

  ended(opening: RequestOpening, outcome: RequestOutcome): void {
    const profile = this.#labels.profile(opening.profile)
    const result = resultOf(outcome)
    const { errorCode, charged, attempts, fusions, firstContentMs, totalMs } = outcome
    this.#requests.inc(profile, result)
    this.#outcomes.inc(this.#labels.format(opening.format), this.#outcomeLabel(errorCode))
    if (charged > 0) this.#units.inc(profile, '', charged)
    const answering = attempts.at(-1)
    const hasAnswered = answering?.outcome === 'answered'
    if (hasAnswered && attempts.length > 1 && fusions === undefined) this.#failovers.inc(profile)
    const { rescued } = rescueOf(outcome)
    if (rescued !== undefined) this.#rescues.inc(profile, rescued)
    for (const { backend, outcome: ended } of attempts)
      this.#attempts.inc(this.#labels.backend(backend), this.#labels.attempt(ended))
    const broken = brokenBackend(outcome)
    if (broken !== undefined) this.#attempts.inc(this.#labels.backend(broken), 'broken_answer')
    if (opening.stream && firstContentMs !== undefined) {
      this.#firstContent.observe(profile, firstContentMs / 1000)
      if (hasAnswered && fusions === undefined)
        this.#backendFirstContent.observe(this.#labels.backend(answering.backend), answering.ms / 1000)
    }
    if (result === 'answered') this.#duration.observe(profile, totalMs / 1000)
    this.#countTokens(outcome)
  }

  #countTokens({ usage, fusions, attempts }: RequestOutcome): void {
    if (fusions === undefined) return this.#addTokens(attempts.at(-1)?.backend ?? accountBackendLabel, usage)
    for (const { calls } of fusions) for (const call of calls) this.#addTokens(call.member, call.usage)
  }

  #addTokens(id: string, used: RequestOutcome['usage']): void {
    if (used === undefined) return
    const backend = this.#labels.backend(id)
    this.#tokens.inc(backend, 'input', used.inputTokens)
    this.#tokens.inc(backend, 'output', used.outputTokens)
    if (used.cachedTokens > 0) this.#tokens.inc(backend, 'cached_input', used.cachedTokens)
    if (used.reasoningTokens > 0) this.#tokens.inc(backend, 'reasoning', used.reasoningTokens)
  }

  #outcomeLabel(errorCode: RequestOutcome['errorCode']): string {
    if (errorCode === undefined) return 'answered'
    return errorCode === 'client_closed' ? errorCode : this.#labels.error(errorCode)
  }

  #initialize(): void {
    const { profiles, backends } = this.#options
    for (const profile of profiles) {
      this.#admissions.inc(profile, '', 0)
      for (const result of requestResults) this.#requests.inc(profile, result, 0)
    }
    for (const backend of [...backends, accountBackendLabel])
      for (const outcome of [...attemptOutcomes, 'broken_answer']) this.#attempts.inc(backend, outcome, 0)
    for (const format of requestFormatIds) this.#outcomes.inc(format, 'record_unavailable', 0)
    for (const code of errorLabels) this.#refusals.inc(code, '', 0)
    for (const part of Object.values(failingParts)) this.#failures.inc(part, '', 0)
    this.#uncounted.inc(0)
  }

  /** Adds what is read only when the metrics are. */
  #addGauges(): void {
    const { version } = this.#options
    this.#gauge('build_info', 'Always 1; the version of svc-router.', ['version']).set({ version }, 1)
    this.#gauge('workers', 'The number of processes whose metrics are included.', []).set(1)
    this.#gauge('open_requests', 'Admitted requests that have not ended.', ['stream'], (gauge) => {
      gauge.set({ stream: 'true' }, this.#open.stream)
      gauge.set({ stream: 'false' }, this.#open.whole)
    })
    const sources = (): MetricsSources | undefined => this.#sources
    this.#gauge('ready', 'Whether /ready answers 200.', [], (gauge) => {
      gauge.set(sources()?.ready() === true ? 1 : 0)
    })
    this.#gauge('settings_applied', 'Whether the declared settings are in force.', [], (gauge) => {
      // A process whose declared settings do not fit does not start, so 1 is correct until the service reports otherwise.
      gauge.set(sources()?.areSettingsApplied() === false ? 0 : 1)
    })
    this.#gauge('backend_state', 'The state of a backend: 1 for the current one.', ['backend', 'state'], (gauge) => {
      const stateOf = sources()?.stateOf
      for (const backend of stateOf === undefined ? [] : this.#options.backends) {
        const current = stateOf!(backend)
        for (const state of backendStates) gauge.set({ backend, state }, state === current ? 1 : 0)
      }
    })
    this.#gauge('queue_length', 'The number of items that wait in a queue.', ['queue'], (gauge) => {
      for (const [queue, length] of Object.entries(sources()?.queues() ?? {})) gauge.set({ queue }, length)
    })
    this.#gauge('load_shedding', 'Whether a kind of load is rejected under overload.', ['kind'], (gauge) => {
      for (const kind of shedLoads) gauge.set({ kind }, sources()?.sheds(kind) === true ? 1 : 0)
    })
    const shares = (): [string, ShareFigures][] => Object.entries(sources()?.shares() ?? {})
    this.#gauge('share_used', 'The used amount of a shared resource.', ['resource'], (gauge) => {
      for (const [resource, { used }] of shares()) gauge.set({ resource }, used)
    })
    this.#gauge('share_limit', 'The limit of a shared resource.', ['resource'], (gauge) => {
      for (const [resource, { limit }] of shares()) gauge.set({ resource }, limit)
    })
    const help = 'How often a caller or address reached its share of a resource.'
    this.#counter('share_rejections_total', help, ['resource'], (counter) => {
      counter.reset()
      for (const [resource, { rejected }] of shares()) counter.inc({ resource }, rejected)
    })
  }

  #tally(name: string, help: string, labelNames: TallyOptions['labelNames']): Tally {
    return new Tally({ name: `svc_router_${name}`, help, labelNames, registry: this.registry })
  }

  #counter<Label extends string>(
    name: string,
    help: string,
    labelNames: readonly Label[],
    collect?: (counter: Counter<Label>) => void,
  ): Counter<Label> {
    const counter: Counter<Label> = new Counter({
      name: `svc_router_${name}`,
      help,
      labelNames,
      registers: [this.registry],
      ...(collect && { collect: () => collect(counter) }),
    })
    return counter
  }

  #gauge<Label extends string>(
    name: string,
    help: string,
    labelNames: readonly Label[],
    collect?: (gauge: Gauge<Label>) => void,
  ): Gauge<Label> {
    const gauge: Gauge<Label> = new Gauge({
      name: `svc_router_${name}`,
      help,
      labelNames,
      aggregator: aggregators[name] ?? 'sum',
      registers: [this.registry],
      ...(collect && { collect: () => collect(gauge) }),
    })
    return gauge
  }

  #histogram(name: string, help: string, labelName: string, bounds: readonly number[]): TallyHistogram {
    return new TallyHistogram({ name: `svc_router_${name}`, help, labelName, bounds, registry: this.registry })
  }
}
