import type { ConversationFormatId } from '../../../src/domain/format-id.ts'
import type { Dice } from '../dice.ts'
import type { DiskState } from './disk.ts'
import { type FaultClass, faultClasses } from './provider-faults.ts'
import { providerNames } from './template.ts'

/** Something that a schedule does at a time. Keys and accounts are positions in the template. */
export type Action = { readonly atMs: number } & (
  | { readonly do: 'request'; readonly request: PlannedRequest }
  | {
      readonly do: 'provider'
      readonly provider: string
      readonly faults: readonly FaultClass[]
      readonly share: number
    }
  | { readonly do: 'close_idle'; readonly provider: string }
  | { readonly do: 'disk'; readonly state: DiskState; readonly forMs: number }
  | { readonly do: 'crash'; readonly what: 'process' | 'machine'; readonly downMs: number }
  | { readonly do: 'restart'; readonly drainMs: number }
  | { readonly do: 'pause'; readonly forMs: number }
  | { readonly do: 'step'; readonly byMs: number }
  | { readonly do: 'revoke'; readonly account: number; readonly key: number }
  | { readonly do: 'plan'; readonly account: number; readonly plan: string }
  | { readonly do: 'suspend'; readonly account: number; readonly forMs: number }
  | { readonly do: 'drain'; readonly backend: string; readonly forMs: number }
)

/** A request of a schedule; see `ClientPlan`. */
export interface PlannedRequest {
  readonly account: number
  /** `unknown`: a key of the right shape that does not exist. */
  readonly key: number | 'unknown'
  readonly format: ConversationFormatId
  readonly stream: boolean
  readonly fusion: boolean
  readonly leavesAfterMs: number | undefined
  readonly leavesAfterBytes: number | undefined
  readonly msPerByte: number | undefined
  readonly sendsSlowlyMs: number | undefined
  readonly retries: number
  readonly isNamed: boolean
  readonly againAfterMs: number | undefined
}

/** What one seed decides. */
export interface Schedule {
  readonly seed: number
  readonly actions: readonly Action[]
  /** When it begins, after the first moment of all worlds. */
  readonly beginsMs: number
  /** When the faults end, after its beginning. */
  readonly endsMs: number
  /** Whether an account asks once more after that. */
  readonly asksAtEnd: boolean
}

/** How large a schedule is. */
interface Size {
  /** One of these numbers of requests. */
  readonly requests: readonly number[]
  /** How long after the first moment of all worlds it may begin, milliseconds. */
  readonly begins: readonly number[]
  /** When the faults may end, milliseconds after that. */
  readonly ends: readonly number[]
  /** How often anything goes wrong, and how often a fault comes while a request is under way. */
  readonly troubled: number
  readonly aimed: number
  /** How often clients try again: a request without a name, and one with. */
  readonly retries: readonly number[]
  readonly namedRetries: readonly number[]
  /** How often an account asks once more at the end. */
  readonly asksAtEnd: number
}

/** As many schedules as this are large: full minutes and months need many requests, and time limits need time. */
const largeShare = 1 / 10
const large: Size = {
  requests: [2, 3, 4, 5, 6, 7, 8, 9, 10],
  begins: [0],
  ends: [4_000, 8_000, 8_000, 20_000, 20_000, 75_000],
  troubled: 0.8,
  aimed: 0.75,
  retries: [0, 0, 1, 2],
  namedRetries: [1, 2, 3],
  asksAtEnd: 1,
}
/** Most bugs need no more than this. */
const small: Size = {
  requests: [1, 1, 2],
  // The month ends after 40 s.
  begins: [0, 0, 0, 0, 39_500],
  ends: [1_000, 2_000, 4_000],
  troubled: 0.95,
  aimed: 0.9,
  retries: [0, 0, 0, 1],
  namedRetries: [1, 1, 2],
  asksAtEnd: 0.2,
}

const formats: readonly ConversationFormatId[] = ['openai-chat', 'openai-responses', 'anthropic-messages']

/** Each schedule draws some kinds of faults and leaves out the others, so that rare combinations occur (swarm testing). */
export function scheduleOf(seed: number, dice: Dice): Schedule {
  const size = dice.chance(largeShare) ? large : small
  const beginsMs = dice.pick(size.begins)
  const endsMs = dice.pick(size.ends)
  const at = (): number => Math.round(dice.between(0, endsMs))
  const actions: Action[] = []
  const some = (share: number, most: number, make: () => Action): void => {
    if (!dice.chance(share)) return
    for (let count = 1 + dice.upTo(most - 1); count > 0; count--) actions.push(make())
  }
  const requests = dice.pick(size.requests)
  const onlyAccount = dice.chance(0.4) ? dice.upTo(2) : undefined
  const onlyFormat = dice.chance(0.3) ? dice.pick(formats) : undefined
  const burstAtMs = dice.chance(0.4) ? at() : undefined
  const isTroubled = dice.chance(size.troubled)
  const planned: PlannedRequest[] = []
  for (let count = 0; count < requests; count++) {
    const atMs = burstAtMs !== undefined && dice.chance(0.7) ? burstAtMs + dice.upTo(50) : at()
    const each = request(dice, size, onlyAccount, onlyFormat, isTroubled)
    planned.push(each)
    actions.push({ atMs, do: 'request', request: each })
  }
  const requestTimes = actions.map(({ atMs }) => atMs)
  /** Most faults come while a request is under way: at other times they would meet nothing. */
  const soon = (): number => (dice.chance(size.aimed) ? dice.pick(requestTimes) + dice.ms(60) : at())
  /** A key that is in use, and a time at which it is. */
  const aimed = (): { atMs: number; account: number; key: number } => {
    const index = dice.upTo(planned.length - 1)
    const { account, key } = planned[index]!
    return { atMs: requestTimes[index]! + dice.ms(60), account, key: key === 'unknown' ? 0 : key }
  }
  if (isTroubled) {
    const classes = faultClasses.filter(() => dice.chance(0.25))
    some(classes.length === 0 ? 0 : 0.8, 5, () => ({
      atMs: dice.chance(0.5) ? 0 : soon(),
      do: 'provider',
      provider: dice.pick([...providerNames, 'own', 'all']),
      faults: classes.filter(() => dice.chance(0.7)),
      share: dice.pick([0.2, 0.5, 1]),
    }))
    some(0.3, 3, () => ({ atMs: soon(), do: 'close_idle', provider: dice.pick(providerNames) }))
    some(0.2, 2, () => ({
      atMs: soon(),
      do: 'disk',
      state: dice.pick<DiskState>(['slow', 'slow', 'failing', 'hung']),
      forMs: dice.ms(2_500),
    }))
    some(0.3, 2, () => ({
      atMs: soon(),
      do: 'crash',
      what: dice.pick(['process', 'process', 'machine']),
      downMs: dice.ms(500),
    }))
    some(0.1, 1, () => ({ atMs: soon(), do: 'restart', drainMs: dice.pick([10, 500, 5_000]) }))
    some(0.1, 1, () => ({ atMs: soon(), do: 'pause', forMs: dice.ms(2_000) }))
    some(0.1, 2, () => ({
      atMs: soon(),
      do: 'step',
      byMs: dice.pick([-3_600_000, -2_000, -300, 300, 2_000, 61_000, 3_600_000]),
    }))
    some(0.15, 2, () => ({ ...aimed(), do: 'revoke' }))
    some(0.1, 2, () => ({
      atMs: soon(),
      do: 'plan',
      account: onlyAccount ?? dice.upTo(2),
      plan: dice.pick(['free', 'pro', 'max']),
    }))
    some(0.1, 1, () => {
      const { atMs, account } = aimed()
      return { atMs, do: 'suspend', account, forMs: dice.ms(4_000) }
    })
    some(0.08, 1, () => ({ atMs: soon(), do: 'drain', backend: dice.pick(providerNames), forMs: dice.ms(4_000) }))
  }
  // Keys that were taken away are tried again.
  for (const action of actions.slice()) {
    if (action.do !== 'revoke' && action.do !== 'suspend') continue
    const atMs = action.atMs + Math.round(dice.between(0, 4_000))
    const again = request(dice, size, action.account, onlyFormat, isTroubled)
    actions.push({ atMs, do: 'request', request: action.do === 'revoke' ? { ...again, key: action.key } : again })
  }
  actions.sort((one, other) => one.atMs - other.atMs)
  return { seed, actions, beginsMs, endsMs, asksAtEnd: dice.chance(size.asksAtEnd) }
}

function request(
  dice: Dice,
  size: Size,
  onlyAccount: number | undefined,
  onlyFormat: ConversationFormatId | undefined,
  isTroubled: boolean,
): PlannedRequest {
  const leaves = isTroubled && dice.chance(0.2)
  const isSlow = isTroubled && dice.chance(0.05)
  const msPerByte = isSlow ? dice.pick([0.02, 0.3, Number.POSITIVE_INFINITY]) : undefined
  const isNamed = dice.chance(0.25)
  return {
    account: onlyAccount ?? dice.upTo(2),
    key: isTroubled && dice.chance(0.03) ? 'unknown' : dice.upTo(1),
    format: onlyFormat ?? dice.pick(formats),
    stream: dice.chance(0.6),
    fusion: !isNamed && dice.chance(0.04),
    leavesAfterMs: leaves && dice.chance(0.6) ? dice.ms(80) : undefined,
    leavesAfterBytes: leaves && dice.chance(0.4) ? dice.upTo(2_000) : undefined,
    msPerByte,
    sendsSlowlyMs: isTroubled && dice.chance(0.05) ? dice.ms(300) : undefined,
    // Somebody who reads nothing would wait a minute each time.
    retries: msPerByte === Number.POSITIVE_INFINITY ? 0 : dice.pick(isNamed ? size.namedRetries : size.retries),
    isNamed,
    againAfterMs: isNamed && dice.chance(0.5) ? dice.ms(400) : undefined,
  }
}

/** One line of the trace. */
export function describeAction(action: Action): string {
  const { atMs: _, do: what, ...rest } = action
  return `${what} ${JSON.stringify(rest)}`
}
