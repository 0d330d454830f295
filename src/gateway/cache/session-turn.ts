import type { CacheVerdict } from '../../domain/cache-verdict.ts'
import type { ClientFamily } from '../../domain/client-family.ts'
import type { Usage } from '../../domain/conversation.ts'
import { hasCountedInput } from '../../domain/estimate-tokens.ts'
import type { RoutingSort } from '../../domain/routing-policy.ts'
import type { Continuation } from '../../formats/cache/plan-marks.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { Backend } from '../ports.ts'
import { cacheDomainOf, cacheLifetimeMs, needsMarks } from './cache-lifetime.ts'
import { holderIn, warmTokens, type BegunAnswer, type Continued, type Holder } from './cached-prefix.ts'
import { affordableWaitSeconds, moveCost, type Place, type PlacePrice, type Turn } from './move-cost.ts'
import type { ReadPrompt } from './prompt-digest.ts'
import type { TurnMemory } from './turn-memory.ts'
import { needsWholePrompt, verdictOf } from './verdict.ts'

/** Writing to a cache costs this much more than reading it for the first time, at providers that charge for it. */
const writeFactorOfMarks = 1.25
const microdollars = 1_000_000
/** The longest wait for a backend that holds the cache, seconds (contract 45.6). */
const longestWaitSeconds = 10

/** What is measured of a backend for the decision. */
interface Measured {
  /** Expected seconds until the first content; undefined if it is unknown. */
  readonly seconds: number | undefined
  readonly failureRate: number
}
export type Measure = (backend: Backend) => Measured

/** An attempt that begins to answer. */
interface BegunAttempt {
  /** A backend, or another endpoint of it. */
  readonly target: Backend
  /** When its request was sent, monotonic milliseconds. */
  readonly startedMs: number
}

/** Which session it is. */
export interface SessionKey {
  /** Its identity within a profile, as a digest. */
  readonly digest: string
  /** Its name in records, which for a named session is the same in all profiles. */
  readonly id: string
  /** Whether the client named it; otherwise, its opening or a `prompt_cache_key` identifies it. */
  readonly isNamed: boolean
}

interface SessionTurnOptions {
  readonly session: SessionKey
  /** Its digests may be copied from an earlier turn: see `digestPrompt`. */
  readonly prompt: ReadPrompt
  /** The earlier turn that this one continues. */
  readonly continued: Continued | undefined
  readonly continuation: Continuation
  readonly client: ClientFamily
  /** The caller's body, in which marks for a longer lifetime are looked for. */
  readonly bytes: Buffer
  readonly clock: Clock
  readonly memory: TurnMemory
}

/** One request as a turn of its session: which backends hold its cache, and what became of it (contract 45). */
export class SessionTurn {
  #options: SessionTurnOptions
  /** The backend that answers; undefined before its first content. */
  #answer: BegunAnswer | undefined
  /** Where its request was sent. */
  #target: Backend | undefined

  constructor(options: SessionTurnOptions) {
    this.#options = options
  }

  get session(): SessionKey {
    return this.#options.session
  }

  get continuation(): Continuation {
    return this.#options.continuation
  }

  /** Whether an earlier turn exists (contract 45.2). */
  get isContinued(): boolean {
    return this.#options.continued !== undefined
  }

  /** Tokens of the prompt that a backend's cache holds and that it is known to read. */
  warmTokens(backend: Backend): number {
    const { continued, prompt, clock } = this.#options
    if (continued === undefined) return 0
    const holder = holderIn(continued.branch, cacheDomainOf(backend))
    return holder === undefined ? 0 : warmTokens(holder, continued, prompt, clock.nowMs())
  }

  /**
   * The backend that the turn goes to because of its cache, of those that are equally preferred, in the order of the
   * profile; undefined if the cache does not matter (contract 45.2, 45.4).
   */
  choose(backends: readonly Backend[], sort: RoutingSort, measure: Measure): Backend | undefined {
    const holder = this.latestWarm(backends)
    if (holder === undefined) return undefined
    const others = sort === 'order' ? backends.slice(0, backends.indexOf(holder)) : backends
    let chosen = holder
    let gain = 0
    for (const other of others) {
      if (other === holder) continue
      const cost = moveCost(this.#turn(sort), ...this.#places(holder, other, measure))
      const saved = cost.waitUsd + cost.failureUsd - cost.refillUsd - cost.laterUsd
      if (!cost.moves || saved <= gain) continue
      chosen = other
      gain = saved
    }
    return chosen
  }

  /**
   * How long to wait for a backend that holds the cache rather than to ask another one, milliseconds; 0 if that one is
   * at least as warm (contract 45.6).
   */
  affordableWaitMs(warm: Backend, other: Backend, sort: RoutingSort, measure: Measure): number {
    const tokens = this.warmTokens(warm)
    if (tokens === 0 || this.warmTokens(other) >= tokens) return 0
    const seconds = affordableWaitSeconds(this.#turn(sort), ...this.#places(warm, other, measure))
    return Math.min(longestWaitSeconds, seconds) * 1000
  }

  /** An attempt at one of the backends began to answer. `isCacheable`: its provider caches a body like the one sent. */
  answeredBy({ target, startedMs }: BegunAttempt, backends: readonly Backend[], isCacheable: boolean): void {
    const { clock, memory } = this.#options
    const backend = backends.find(({ id }) => id === target.id) ?? target
    const domain = cacheDomainOf(backend)
    this.#target = target
    this.#answer = {
      domain,
      backend: backend.id,
      startedMs: clock.nowMs() - (clock.monotonicMs() - startedMs),
      lifetimeMs: this.#lifetimeMs(target, domain),
      marked: isCacheable,
    }
    memory.answered(this.#answer)
  }

  /**
   * Why the backend read what it read; undefined if none answered. If this is not a hit and the digests were copied, reads the
   * whole prompt, because a change in place may have been missed.
   */
  verdict(usage: Usage | undefined): CacheVerdict | undefined {
    const { continued, prompt, client, bytes, memory } = this.#options
    const answer = this.#answer
    if (answer === undefined) return undefined
    const verdict = verdictOf({ continued, prompt, answer, client }, usage)
    if (prompt.follows === undefined || !needsWholePrompt(verdict)) return verdict
    const whole = memory.readAgain({ ...answer, lifetimeMs: cacheLifetimeMs(this.#target!, bytes) })
    this.#options = { ...this.#options, ...whole }
    return verdictOf({ ...whole, answer, client }, usage)
  }

  /** If no mark of the previous turn asked for a longer lifetime, only what was added is searched for one. */
  #lifetimeMs(target: Backend, domain: string): number {
    const { bytes, continued, prompt } = this.#options
    const branch = continued?.branch
    const holder = branch?.holders[0]
    const isSearched =
      branch !== undefined &&
      branch.prompt === prompt.follows &&
      holder?.domain === domain &&
      holder.items === branch.prompt.count &&
      // From the end: the lifetime without any setting in the body.
      holder.lifetimeMs === cacheLifetimeMs(target, bytes, bytes.length)
    return cacheLifetimeMs(target, bytes, isSearched ? prompt.unreadFrom : 0)
  }

  /** The answer ended, and this is what its provider counted. */
  ended(usage: Usage | undefined): void {
    const answer = this.#answer
    if (answer === undefined || usage === undefined || !hasCountedInput(usage) || usage.inputTokens === 0) return
    const { expected = 0 } = this.verdict(usage) ?? {}
    const report = { inputTokens: usage.inputTokens, readTokens: usage.cachedTokens, expected }
    // The verdict may have read the whole prompt.
    const { prompt, memory } = this.#options
    memory.reported(prompt, answer.domain, report)
  }

  /** The backend whose cache was used last, of those that are still warm. */
  latestWarm(backends: readonly Backend[]): Backend | undefined {
    const { continued } = this.#options
    if (continued === undefined) return undefined
    for (const holder of continued.branch.holders) {
      const found = backendOf(holder, backends)
      if (found !== undefined && this.warmTokens(found) > 0) return found
    }
    return undefined
  }

  #turn(sort: RoutingSort): Turn {
    const { continued, prompt } = this.#options
    const { tokens = 0, bytes = 1 } = continued?.branch.holders[0] ?? {}
    const promptTokens = tokens * Math.max(1, prompt.ends[2] / Math.max(1, bytes))
    return { promptTokens, turns: continued?.branch.turns ?? 0, comparesPrices: sort !== 'latency' }
  }

  /** Two backends to compare. What is unknown of one is assumed to be as at the other. */
  #places(stay: Backend, move: Backend, measure: Measure): [stay: Place, move: Place] {
    const here = measure(stay)
    const there = measure(move)
    const isComparable = here.seconds !== undefined && there.seconds !== undefined
    const place = (backend: Backend, { seconds = 0, failureRate }: Measured): Place => ({
      price: priceOf(backend, this.#options.clock.nowMs()),
      writeFactor: needsMarks(backend) ? writeFactorOfMarks : 1,
      warmTokens: this.warmTokens(backend),
      seconds: isComparable ? seconds : 0,
      failureRate,
    })
    return [place(stay, here), place(move, there)]
  }
}

/** The backend that the holder names, or else the first one with the same cache; undefined if there is none. */
function backendOf({ domain, backend }: Holder, backends: readonly Backend[]): Backend | undefined {
  let found: Backend | undefined
  for (const one of backends) {
    if (cacheDomainOf(one) !== domain) continue
    if (one.id === backend) return one
    found ??= one
  }
  return found
}

/** The published or the operator's price of a backend at this time, US dollars per million tokens. */
function priceOf({ price, usdPerMillion }: Backend, nowMs: number): PlacePrice | undefined {
  if (price === undefined) return usdPerMillion && { ...usdPerMillion, cacheRead: usdPerMillion.cachedInput }
  const { input, output, cacheRead, cacheWrite } = price.at(nowMs).rates
  const usd = (rate: number | undefined): number | undefined => rate && rate / microdollars
  return {
    input: input / microdollars,
    output: output / microdollars,
    cacheRead: usd(cacheRead),
    cacheWrite: usd(cacheWrite),
  }
}
