import { setTimeout as delay } from 'node:timers/promises'
import { Service } from '../service.ts'
import { FaultyProvider, wholeText, type FaultTimes } from './faulty-provider.ts'
import {
  judge,
  scenarios,
  type Observation,
  type Outcome,
  type Scenario,
  type Sequence,
  type Verdict,
} from './scenarios.ts'

/** How a series of requests is sent through an outage. */
interface SequenceTimes {
  readonly count: number
  readonly everyMs: number
}

export interface BenchmarkOptions {
  readonly times: FaultTimes
  readonly sequence: SequenceTimes
  /** Timeouts of every backend; none for the defaults. */
  readonly timeouts?: Readonly<Record<string, string>>
}

/** The configurations that are reported: everything by default, and with one setting more. */
const configurations = { default: {}, tuned: { routing: { rescue: 'verified' } } } as const
export type Configuration = keyof typeof configurations

export interface ScenarioResult {
  readonly scenario: Scenario
  readonly verdict: Verdict
  /** The minimum verdict with this configuration. */
  readonly expected: Verdict
  readonly seen: Observation
}

const ranks = { fail: 0, safe: 1, partial: 2, pass: 3 } as const

/** The scenarios that ended worse than expected. */
export function worseThanExpected(results: readonly ScenarioResult[]): string[] {
  return results
    .filter(({ verdict, expected }) => ranks[verdict] < ranks[expected])
    .map(({ scenario, verdict }) => `${scenario.id} ${verdict}`)
}

/**
 * Runs all scenarios concurrently through one service, streamed. Each has its own provider, primary, and fallback.
 */
export async function runBenchmark(configuration: Configuration, options: BenchmarkOptions): Promise<ScenarioResult[]> {
  const runs = await Promise.all(
    scenarios.map(async (scenario) => {
      const { id, fault, fallback = 'none' } = scenario
      const faults = { [primaryOf(id)]: fault, [fallbackOf(id)]: fallback }
      return { scenario, provider: await FaultyProvider.start(faults, options.times) }
    }),
  )
  const service = await startService(runs, configuration, options.timeouts)
  try {
    return await Promise.all(
      runs.map(async ({ scenario, provider }) => {
        const seen = await observe(service, provider, scenario, options.sequence)
        const expected = (configuration === 'tuned' ? scenario.rescued : undefined) ?? scenario.expected
        return { scenario, verdict: judge(scenario, seen), expected, seen }
      }),
    )
  } finally {
    await service.stop()
    await Promise.all(runs.map(({ provider }) => provider.close()))
  }
}

/** One line for each scenario, and the counts. */
export function writeScorecard(configuration: Configuration, results: readonly ScenarioResult[]): string {
  const lines = results.map(({ scenario, verdict, seen }) => {
    const { primaryAttempts, fallbackAttempts, elapsedMs } = seen
    const detail = `${(elapsedMs / 1000).toFixed(1)} s, primary ${primaryAttempts}, fallback ${fallbackAttempts}`
    return `${scenario.id}  ${verdict.padEnd(7)}  ${scenario.title} (${detail})`
  })
  const count = (verdict: Verdict): string => `${verdict} ${results.filter((one) => one.verdict === verdict).length}`
  const title = `${configuration}: ${JSON.stringify(configurations[configuration])}`
  return [title, ...lines, (['pass', 'partial', 'safe', 'fail'] as const).map(count).join(', ')].join('\n')
}

const primaryOf = (id: string): string => `primary-${id.toLowerCase()}`
const fallbackOf = (id: string): string => `fallback-${id.toLowerCase()}`
const profileOf = (id: string): string => `bench/${id.toLowerCase()}`

function startService(
  runs: readonly { readonly scenario: Scenario; readonly provider: FaultyProvider }[],
  configuration: Configuration,
  timeouts: BenchmarkOptions['timeouts'],
): Promise<Service> {
  const providers: Record<string, object> = {}
  const backends: Record<string, object> = {}
  const profiles: Record<string, object> = {}
  for (const { scenario, provider } of runs) {
    const { id } = scenario
    const names = [primaryOf(id), fallbackOf(id)]
    providers[id] = { preset: 'custom', base_url: provider.baseUrl, format: 'openai-chat' }
    for (const name of names) backends[name] = { provider: id, model: name, ...(timeouts && { timeouts }) }
    profiles[profileOf(id)] = { backends: names, reports_model: true, ...configurations[configuration] }
  }
  const frontier = { backends: Object.keys(backends).slice(0, 1) }
  return Service.start({
    formats: [],
    settings: { providers, backends, profiles: { 'svc-router/frontier': frontier, ...profiles } },
  })
}

async function observe(
  service: Service,
  provider: FaultyProvider,
  scenario: Scenario,
  times: SequenceTimes,
): Promise<Observation> {
  const { id } = scenario
  provider.reset()
  const series = scenario.isSequence && (await askThroughOutage(service, provider, scenario, times))
  const outcome = series?.outcome ?? (await ask(service, profileOf(id), scenario.limitSeconds * 1000))
  const primary = provider.seen.filter(({ model }) => model === primaryOf(id))
  const fallback = provider.seen.filter(({ model }) => model === fallbackOf(id))
  const observed = {
    ...outcome,
    primaryAtMs: primary.map(({ atMs }) => atMs),
    prefillRefused: fallback.some(({ prefillRefused }) => prefillRefused),
    fallbackModel: fallbackOf(id),
    primaryAttempts: primary.length,
    fallbackAttempts: fallback.length,
    sequence: series?.sequence,
  }
  const alive = await ask(service, profileOf(scenarios[0]!.id), aliveLimitMs)
  return { ...observed, isAlive: alive.kind === 'answered' && alive.isWhole }
}

/** Sends a healthy request after a scenario. The backends of the first scenario answer all requests except their first. */
const aliveLimitMs = 10_000

async function askThroughOutage(
  service: Service,
  provider: FaultyProvider,
  { id, limitSeconds }: Scenario,
  { count, everyMs }: SequenceTimes,
): Promise<{ outcome: Outcome; sequence: Sequence }> {
  const { downMs } = provider.times
  const outcomes: { readonly sentMs: number; readonly outcome: Outcome }[] = []
  for (let index = 0; index < count; index++) {
    await delay(Math.max(0, index * everyMs - provider.nowMs))
    const sentMs = provider.nowMs
    outcomes.push({ sentMs, outcome: await ask(service, profileOf(id), limitSeconds * 1000) })
  }
  const whileDown = outcomes.filter(({ sentMs }) => sentMs < downMs)
  const recovered = provider.seen.find(({ model, healthy }) => model === primaryOf(id) && healthy)
  const worst =
    outcomes.find(({ outcome }) => outcome.kind === 'hang') ??
    outcomes.find(({ outcome }) => outcome.kind === 'error' || !outcome.isWhole) ??
    outcomes.at(-1)!
  return {
    outcome: worst.outcome,
    sequence: {
      askedWhileDown: whileDown.length,
      answeredWhileDown: whileDown.filter(({ outcome }) => outcome.kind === 'answered').length,
      recoveredAfterMs: recovered && recovered.atMs - downMs,
    },
  }
}

/** Sends one streamed request and reads it like a careful client: after an error event, the result is an error. */
async function ask(service: Service, model: string, limitMs: number): Promise<Outcome> {
  const startedMs = performance.now()
  const signal = AbortSignal.timeout(limitMs)
  const failed = (kind: 'error' | 'hang'): Outcome => ({
    kind,
    isWhole: false,
    model: undefined,
    hasUsage: false,
    elapsedMs: performance.now() - startedMs,
  })
  try {
    const body = { model, messages: [{ role: 'user', content: 'Say sixty words.' }], stream: true }
    const withUsage = { ...body, stream_options: { include_usage: true } }
    const response = await service.post('/chat/completions', withUsage, {}, signal)
    const text = await response.text()
    if (response.status !== 200) return failed('error')
    const answer = readStream(text)
    return answer === undefined ? failed('error') : { ...answer, elapsedMs: performance.now() - startedMs }
  } catch {
    return failed(signal.aborted ? 'hang' : 'error')
  }
}

interface Chunk {
  readonly error?: unknown
  readonly model?: string
  readonly usage?: object | null
  readonly choices?: readonly { readonly delta?: { readonly content?: string } }[]
}

/**
 * The text of a stream; undefined if the stream reports an error. Skips events that are not JSON, as many clients do.
 */
function readStream(text: string): Omit<Outcome, 'elapsedMs'> | undefined {
  let content = ''
  let model: string | undefined
  let hasUsage = false
  for (const line of text.split('\n')) {
    if (!line.startsWith('data:')) continue
    const data = line.slice('data:'.length).trim()
    if (data === '[DONE]') break
    const chunk = parse(data)
    if (chunk === undefined) continue
    if (chunk.error != null) return undefined
    model = chunk.model ?? model
    hasUsage ||= chunk.usage != null
    content += chunk.choices?.map(({ delta }) => delta?.content ?? '').join('') ?? ''
  }
  return { kind: 'answered', isWhole: content === wholeText, model, hasUsage }
}

function parse(data: string): Chunk | undefined {
  try {
    return JSON.parse(data) as Chunk
  } catch {
    return undefined
  }
}
