import { BoundedMap } from '../../domain/bounded-map.ts'
import type { Clock } from '../../domain/clock.ts'
import type { Need } from '../../domain/upstream.ts'
import type { Dialect } from '../../formats/format.ts'
import { withRefused } from '../../formats/refusals/optional-fields.ts'
import type { Backend } from '../ports.ts'

/** What was learned holds for this long, then the backend is asked in full again: servers are updated (contract 7.15). */
const holdsForMs = 15 * 60_000
/** Backends and endpoints remembered at once; the one that was learned about longest ago is forgotten first. */
const maxRemembered = 10_000

interface EndpointLesson {
  /** The endpoint's own dialect with the fields that it refused. */
  readonly dialect?: Dialect
  readonly isMissing?: boolean
}

interface BackendLesson {
  readonly lacks?: ReadonlySet<Need>
  readonly windowTokens?: number
}

/**
 * What backends' refusals have taught: which optional fields they do not take, what they cannot do, how long a
 * conversation may be, and which of their endpoints are not there (contract 7.15).
 *
 * Fields and missing endpoints are left out at once. What a backend cannot do only moves it behind the others: a refusal
 * may repeat what a caller wrote, and no caller may take a backend away from others.
 */
export class LearnedLimits {
  readonly #endpoints: Lessons<EndpointLesson>
  readonly #backends: Lessons<BackendLesson>

  constructor(clock: Clock) {
    this.#endpoints = new Lessons(clock)
    this.#backends = new Lessons(clock)
  }

  /** How the endpoint wants to be asked now. */
  dialectOf(endpoint: Backend): Dialect {
    return this.#endpoints.isEmpty
      ? endpoint.dialect
      : (this.#endpoints.get(keyOf(endpoint))?.dialect ?? endpoint.dialect)
  }

  isMissing(endpoint: Backend): boolean {
    return !this.#endpoints.isEmpty && this.#endpoints.get(keyOf(endpoint))?.isMissing === true
  }

  /** Whether anything was learned that says which requests the backend cannot answer. */
  hasLessonsOf({ id }: Backend): boolean {
    return !this.#backends.isEmpty && this.#backends.get(id) !== undefined
  }

  lacks({ id }: Backend, need: Need): boolean {
    return this.#backends.get(id)?.lacks?.has(need) === true
  }

  /** The context window in tokens: what is declared, or what a refusal told. */
  windowOf({ id, contextWindow }: Backend): number | undefined {
    return contextWindow ?? this.#backends.get(id)?.windowTokens
  }

  learnFields(endpoint: Backend, fields: readonly string[]): void {
    this.#endpoints.add(keyOf(endpoint), { dialect: withRefused(this.dialectOf(endpoint), fields) })
  }

  learnMissing(endpoint: Backend): void {
    this.#endpoints.add(keyOf(endpoint), { isMissing: true })
  }

  learnLack({ id }: Backend, need: Need): void {
    this.#backends.add(id, { lacks: new Set([...(this.#backends.get(id)?.lacks ?? []), need]) })
  }

  learnWindow({ id }: Backend, windowTokens: number): void {
    this.#backends.add(id, { windowTokens })
  }
}

/** Lessons by key; those about one key end together, `holdsForMs` after the last of them. */
class Lessons<Lesson extends object> {
  readonly #clock: Clock
  readonly #byKey = new BoundedMap<string, { readonly lesson: Lesson; readonly untilMs: number }>(maxRemembered)

  constructor(clock: Clock) {
    this.#clock = clock
  }

  get isEmpty(): boolean {
    return this.#byKey.size === 0
  }

  get(key: string): Lesson | undefined {
    const found = this.#byKey.get(key)
    return found === undefined || found.untilMs <= this.#clock.monotonicMs() ? undefined : found.lesson
  }

  add(key: string, learned: Lesson): void {
    const lesson = { ...this.get(key), ...learned }
    this.#byKey.setLast(key, { lesson, untilMs: this.#clock.monotonicMs() + holdsForMs })
  }
}

function keyOf({ id, format }: Backend): string {
  return `${format} ${id}`
}
