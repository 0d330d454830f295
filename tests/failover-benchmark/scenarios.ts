import type { Fault } from './faulty-provider.ts'

/**
 * `pass`: answered in full and every check met. `partial`: answered, an advisory check missed. `safe`: a clean error in
 * time.
 */
export type Verdict = 'pass' | 'partial' | 'safe' | 'fail'

/** The result of one request for a careful client. */
export interface Outcome {
  /** `hang`: the request did not end within the limit. */
  readonly kind: 'answered' | 'error' | 'hang'
  /** Whether the text was exactly the complete answer. */
  readonly isWhole: boolean
  readonly model: string | undefined
  readonly hasUsage: boolean
  readonly elapsedMs: number
}

/** The observations of one scenario. Times are in milliseconds since its start. */
export interface Observation extends Outcome {
  readonly primaryAtMs: readonly number[]
  readonly prefillRefused: boolean
  readonly fallbackModel: string
  readonly primaryAttempts: number
  readonly fallbackAttempts: number
  /** Whether a healthy request was answered afterwards. */
  readonly isAlive: boolean
  readonly sequence: Sequence | undefined
}

/** The results of a series of requests during an outage. */
export interface Sequence {
  readonly askedWhileDown: number
  readonly answeredWhileDown: number
  /**
   * From the end of the outage to the first healthy answer of the primary; undefined if it was not asked again.
   */
  readonly recoveredAfterMs: number | undefined
}

type Check = (seen: Observation) => boolean

export interface Scenario {
  readonly id: string
  readonly title: string
  readonly fault: Fault
  readonly fallback?: Fault
  /** Default: the complete answer. */
  readonly ideal?: 'error'
  /** The time limit of the request in seconds of real time. */
  readonly limitSeconds: number
  readonly isSequence?: true
  readonly required: readonly Check[]
  readonly advisory?: readonly Check[]
  /** The minimum verdict with the default configuration, */
  readonly expected: Verdict
  /** and with `rescue: verified`, if that is better. */
  readonly rescued?: Verdict
}

const primaryAttemptsAtMost =
  (most: number): Check =>
  ({ primaryAttempts }) =>
    primaryAttempts <= most
const primaryAttemptsAtLeast =
  (least: number): Check =>
  ({ primaryAttempts }) =>
    primaryAttempts >= least
const within =
  (seconds: number): Check =>
  ({ elapsedMs }) =>
    elapsedMs <= seconds * 1000
const atMostWithin =
  (most: number, seconds: number): Check =>
  ({ primaryAtMs }) =>
    primaryAtMs.filter((atMs) => atMs - primaryAtMs[0]! < seconds * 1000).length <= most
const isAliveAfter: Check = ({ isAlive }) => isAlive
const hasUsage: Check = (seen) => seen.hasUsage
const isWhole: Check = (seen) => seen.isWhole

/**
 * The sixteen scenarios of the public Failover Bench (methodology 0.1), with its checks. Seconds are those of its
 * published profile; the provider's times may be shorter.
 */
export const scenarios: readonly Scenario[] = [
  {
    id: 'S01',
    title: '429 with Retry-After, then healthy',
    fault: 'rate-limited-once',
    limitSeconds: 20,
    required: [atMostWithin(2, 1.5)],
    advisory: [primaryAttemptsAtLeast(2), ({ primaryAtMs: [first, second] }) => (second ?? 0) - (first ?? 0) >= 1800],
    expected: 'pass',
  },
  {
    id: 'S02',
    title: '429 without Retry-After, for good',
    fault: 'rate-limited',
    limitSeconds: 40,
    required: [atMostWithin(4, 3), primaryAttemptsAtMost(6)],
    expected: 'pass',
  },
  {
    id: 'S03',
    title: '500 once, then healthy',
    fault: 'error-once',
    limitSeconds: 20,
    required: [],
    advisory: [primaryAttemptsAtLeast(2)],
    expected: 'pass',
  },
  {
    id: 'S04',
    title: '503 for good',
    fault: 'overloaded',
    limitSeconds: 40,
    required: [primaryAttemptsAtMost(6)],
    expected: 'pass',
  },
  {
    id: 'S05',
    title: 'connection reset before the headers, once',
    fault: 'reset-once',
    limitSeconds: 20,
    required: [],
    expected: 'pass',
  },
  {
    id: 'S06',
    title: 'no answer at all',
    fault: 'silent',
    limitSeconds: 130,
    required: [within(100)],
    advisory: [primaryAttemptsAtMost(1)],
    expected: 'pass',
  },
  {
    id: 'S07',
    title: 'slow first token',
    fault: 'slow-first-token',
    limitSeconds: 60,
    required: [],
    advisory: [within(15)],
    expected: 'pass',
  },
  {
    id: 'S08',
    title: 'stream truncated in the middle',
    fault: 'cut',
    limitSeconds: 40,
    required: [],
    expected: 'safe',
    rescued: 'pass',
  },
  {
    id: 'S09',
    title: 'stream stalls',
    fault: 'stall',
    limitSeconds: 70,
    required: [within(45), isAliveAfter],
    expected: 'safe',
    rescued: 'pass',
  },
  {
    id: 'S10',
    title: 'malformed event in the stream',
    fault: 'malformed-event',
    limitSeconds: 30,
    required: [isAliveAfter],
    advisory: [isWhole],
    expected: 'safe',
    rescued: 'pass',
  },
  {
    id: 'S11',
    title: 'stream without [DONE]',
    fault: 'no-done',
    limitSeconds: 30,
    required: [within(8)],
    advisory: [hasUsage],
    expected: 'pass',
  },
  {
    id: 'S12',
    title: 'context too long',
    fault: 'context-too-long',
    limitSeconds: 20,
    required: [primaryAttemptsAtMost(1)],
    expected: 'pass',
  },
  {
    id: 'S13',
    title: 'content filter',
    fault: 'content-filter',
    ideal: 'error',
    limitSeconds: 20,
    required: [primaryAttemptsAtMost(1)],
    expected: 'pass',
  },
  {
    id: 'S14',
    title: 'stream cut, and the fallback takes no prefill',
    fault: 'cut',
    fallback: 'no-prefill',
    limitSeconds: 40,
    required: [({ kind, prefillRefused }) => kind === 'answered' || !prefillRefused],
    expected: 'safe',
    rescued: 'pass',
  },
  {
    id: 'S15',
    title: 'down for a minute, then healthy',
    fault: 'flapping',
    limitSeconds: 200,
    isSequence: true,
    required: [
      ({ sequence }) => sequence!.askedWhileDown > 0 && sequence!.answeredWhileDown === sequence!.askedWhileDown,
      ({ sequence }) => (sequence!.recoveredAfterMs ?? Number.POSITIVE_INFINITY) <= 30_000,
    ],
    expected: 'pass',
  },
  {
    id: 'S16',
    title: 'what is reported of a failover',
    fault: 'overloaded',
    limitSeconds: 40,
    required: [({ model, fallbackModel }) => model?.includes(fallbackModel) === true, primaryAttemptsAtMost(6)],
    advisory: [hasUsage],
    expected: 'pass',
  },
]

/** The verdict by the rules of the benchmark. */
export function judge(scenario: Scenario, seen: Observation): Verdict {
  if (seen.kind === 'hang') return 'fail'
  if (seen.kind === 'answered' && !seen.isWhole && scenario.ideal === undefined) return 'fail'
  if (!scenario.required.every((check) => check(seen))) return 'fail'
  if (scenario.ideal === 'error') return seen.kind === 'error' ? 'pass' : 'partial'
  if (seen.kind === 'error') return 'safe'
  return (scenario.advisory ?? []).every((check) => check(seen)) ? 'pass' : 'partial'
}
