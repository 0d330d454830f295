import type { Clock } from '../domain/clock.ts'
import { errorCatalog } from '../domain/errors.ts'
import type { ServiceEvent } from '../domain/events.ts'
import type { BackendCondition, HourCount } from '../domain/backend-condition.ts'
import { describeBackend } from '../domain/backend-words.ts'
import { HourTally } from '../domain/hour-tally.ts'
import {
  indicatorOf,
  type ComponentState,
  type ServiceStatus,
  type StatusComponent,
  type StatusDay,
} from '../domain/service-status.ts'
import {
  addUp,
  dayOf,
  shownDays,
  uptimeDays,
  UptimeTally,
  type UptimeCount,
  type UptimeKind,
} from '../domain/uptime.ts'
import type { StatusStore } from './status-ports.ts'

/** What is counted is written down this often: so much is lost when the process dies (contract 18.5). */
const writeEveryMs = 60_000
/** What was read last is shown for so long, so that no crowd before the page reaches the database (contract 18.4). */
const freshMs = 10_000
const dayMs = 86_400_000
const incidentDays = 14
const maxIncidents = 50

/** The profiles and backends that everybody may see, and how they do. */
export interface StatusBoardParts {
  readonly clock: Clock
  readonly store: Pick<StatusStore, 'addUptime' | 'listUptime' | 'listIncidents'>
  readonly profiles: readonly { readonly id: string; readonly backends: readonly string[] }[]
  /** Backends that belong to no single account. */
  readonly backends: readonly string[]
  /** All that are configured, also those that nobody is shown. */
  readonly configured: readonly string[]
  /** The state of a backend in this process. */
  readonly condition: (backendId: string) => Pick<BackendCondition, 'state' | 'reason' | 'isTroubled'>
  /** Why the API would not take requests; empty where it does. */
  readonly reasons: () => readonly string[]
  readonly onFailed: (error: unknown) => void
}

/** Knows how the service does, and how it did: from the requests that are really made (contract 18). */
export class StatusBoard implements AsyncDisposable {
  readonly #parts: StatusBoardParts
  readonly #tally = new UptimeTally()
  readonly #hour: HourTally
  #timer: { cancel(): void } | undefined
  #read: { readonly status: Promise<ServiceStatus>; readonly atMs: number } | undefined

  constructor(parts: StatusBoardParts) {
    this.#parts = parts
    this.#hour = new HourTally(parts.configured)
    this.#schedule()
  }

  /** Takes note of what is logged; of all but the ends of requests, nothing. */
  note(event: ServiceEvent): void {
    if (event.event !== 'request') return
    const { clock, backends } = this.#parts
    const nowMs = clock.nowMs()
    const isAnswered = event.outcome === 'answered'
    for (const name of event.failed ?? []) {
      this.#hour.note(clock.monotonicMs(), name, false)
      if (backends.includes(name)) this.#tally.note(nowMs, 'backend', name, false)
    }
    if (event.upstream === undefined) {
      if (!isAnswered && this.#isOurFault(event)) this.#tally.note(nowMs, 'profile', event.profile, false)
      return
    }
    if (isAnswered)
      this.#hour.note(clock.monotonicMs(), event.upstream, true, event.attempts === 1 ? event.ms : undefined)
    // What an account brought itself says nothing of the service.
    if (!backends.includes(event.upstream)) return
    if (isAnswered) this.#tally.note(nowMs, 'backend', event.upstream, true)
    if (isAnswered || this.#isOurFault(event)) this.#tally.note(nowMs, 'profile', event.profile, isAnswered)
  }

  /** How a configured backend did within the last hour, in requests of this process. */
  lastHour(backendId: string): HourCount {
    return this.#hour.read(this.#parts.clock.monotonicMs(), backendId)
  }

  /** Everything that the page says, at most ten seconds old. */
  read(): Promise<ServiceStatus> {
    const nowMs = this.#parts.clock.monotonicMs()
    if (this.#read !== undefined && nowMs - this.#read.atMs < freshMs) return this.#read.status
    const status = this.#look(this.#parts.clock.nowMs())
    this.#read = { status, atMs: nowMs }
    // What failed is asked again at once.
    status.catch(() => {
      this.#read = undefined
    })
    return status
  }

  /** Forgets what was read: an incident was written. */
  forget(): void {
    this.#read = undefined
  }

  /** Writes down what is counted. */
  async write(): Promise<void> {
    const counts = this.#tally.take()
    if (counts.length === 0) return
    const { store, clock } = this.#parts
    try {
      await store.addUptime(counts, dayOf(clock.nowMs() - uptimeDays * dayMs))
    } catch (error) {
      this.#tally.putBack(counts)
      this.#parts.onFailed(error)
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#timer?.cancel()
    this.#timer = undefined
    await this.write()
  }

  #schedule(): void {
    this.#timer = this.#parts.clock.after(writeEveryMs, () => {
      void this.write().finally(() => {
        if (this.#timer !== undefined) this.#schedule()
      })
    })
  }

  /** Whether a request failed through no fault of its caller, or of what only its account has. */
  #isOurFault({ outcome, upstream, profile }: Extract<ServiceEvent, { event: 'request' }>): boolean {
    if (outcome === 'answered' || outcome === 'client_closed' || outcome === 'upstream_credentials_rejected')
      return false
    const { status, source } = errorCatalog[outcome]
    if (status < 500) return false
    // Nobody was asked: with an account's own backends cooling, too. It is ours only where ours are.
    return upstream !== undefined || source === 'gateway' || this.#profileState(profile) === 'down'
  }

  async #look(nowMs: number): Promise<ServiceStatus> {
    const { store, profiles, backends, reasons, condition } = this.#parts
    const days = shownDays(nowMs)
    const [kept, incidents] = await Promise.all([
      store.listUptime(days[0]!),
      store.listIncidents(nowMs - incidentDays * dayMs, maxIncidents),
    ])
    const counts = addUp([...kept, ...this.#tally.list()])
    const daysOf = (kind: UptimeKind, name: string): readonly StatusDay[] =>
      days.map((day) => ({ day, share: shareOf(counts, { kind, name, day }) }))
    const why = reasons()
    const components: StatusComponent[] = [
      { kind: 'api', name: 'API', state: why.length === 0 ? 'operational' : 'down', note: why[0], days: [] },
      ...profiles.map(({ id, backends: behind }): StatusComponent => {
        const isShared = behind.some((name) => backends.includes(name))
        const note = isShared ? undefined : 'runs on each account’s own providers'
        return { kind: 'profile', name: id, state: this.#profileState(id), note, days: daysOf('profile', id) }
      }),
      ...backends.map((name): StatusComponent => {
        const { component, note } = describeBackend(condition(name), this.lastHour(name))
        return { kind: 'backend', name, state: component, note, days: daysOf('backend', name) }
      }),
    ]
    return { atMs: nowMs, indicator: indicatorOf(components, incidents), components, incidents }
  }

  #profileState(id: string): ComponentState {
    const { profiles, backends, condition } = this.#parts
    const behind =
      profiles.find((profile) => profile.id === id)?.backends.filter((name) => backends.includes(name)) ?? []
    if (behind.length === 0) return 'operational'
    const usable = behind.filter((name) => ['closed', 'half_open'].includes(condition(name).state)).length
    if (usable === 0) return 'down'
    return usable * 2 < behind.length ? 'degraded' : 'operational'
  }
}

function shareOf(counts: readonly UptimeCount[], of: Pick<UptimeCount, 'kind' | 'name' | 'day'>): number | undefined {
  const found = counts.find(({ kind, name, day }) => kind === of.kind && name === of.name && day === of.day)
  const asked = found === undefined ? 0 : found.answered + found.failed
  return found === undefined || asked === 0 ? undefined : found.answered / asked
}
