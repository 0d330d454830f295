import type { BackendState, HourCount } from '../../domain/backend-state.ts'
import { describeBackend } from '../../domain/backend-status-text.ts'
import { errorCatalog } from '../../domain/errors.ts'
import type { ServiceEvent } from '../../domain/events.ts'
import { HourTally } from '../../domain/hour-tally.ts'
import { isServedByOwn, type Profile } from '../../domain/profiles.ts'
import type { ServiceHealth } from '../../domain/service-health.ts'
import {
  indicatorOf,
  type ComponentState,
  type ServiceStatus,
  type StatusComponent,
  type StatusDay,
} from '../../domain/service-status.ts'
import {
  addUp,
  dayOf,
  shownDays,
  uptimeDays,
  UptimeTally,
  type UptimeCount,
  type UptimeKind,
} from '../../domain/uptime.ts'
import type { Clock } from '../../runtime/clock.ts'
import { dayMs } from '../../runtime/durations.ts'
import type { StatusStore } from './status-ports.ts'

/** How often counts are stored; a crash loses at most this much (contract 18.5). */
const writeEveryMs = 60_000
/** How long the last result is reused, so that traffic on the page does not reach the database (contract 18.4). */
const freshMs = 10_000
const incidentDays = 14
const maxIncidents = 50

/** What the page shows of the service's health; `condition` includes operators' holds. */
interface ShownHealth extends Pick<ServiceHealth, 'lastHour' | 'serving'> {
  condition(backendId: string): Pick<BackendState, 'state' | 'reason' | 'isTroubled' | 'skippedBy'>
}

type ShownProfile = Pick<Profile, 'id' | 'backends' | 'isLikeFrontier'>

/** The public profiles and backends, and their health. */
export interface StatusBoardDeps {
  readonly clock: Clock
  readonly store: Pick<StatusStore, 'addUptime' | 'listUptime' | 'listIncidents'>
  readonly profiles: readonly ShownProfile[]
  /** Backends that belong to no single account. */
  readonly backends: readonly string[]
  /** All configured backends, including those that are not public. */
  readonly configured: readonly string[]
  /** The state of a backend in this process. */
  readonly condition: (backendId: string) => Pick<BackendState, 'state'>
  /** The health of the whole service. */
  readonly health: () => Promise<ShownHealth>
  readonly onFailed: (error: unknown) => void
}

/** The service's current health and its history, derived from real requests (contract 18). */
export class StatusBoard implements AsyncDisposable {
  readonly #deps: StatusBoardDeps
  readonly #tally = new UptimeTally()
  readonly #hour: HourTally
  #timer: { cancel(): void } | undefined
  #read: { readonly status: Promise<ServiceStatus>; readonly atMs: number } | undefined

  constructor(deps: StatusBoardDeps) {
    this.#deps = deps
    this.#hour = new HourTally(() => deps.configured)
    this.#schedule()
  }

  /** Records a logged event; only the ends of requests count. */
  note(event: ServiceEvent): void {
    if (event.event !== 'request') return
    const { clock, backends } = this.#deps
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
    // An account's own backends say nothing about the service.
    if (!backends.includes(event.upstream)) return
    if (isAnswered) this.#tally.note(nowMs, 'backend', event.upstream, true)
    if (isAnswered || this.#isOurFault(event)) this.#tally.note(nowMs, 'profile', event.profile, isAnswered)
  }

  /** A configured backend's results in the last hour, counting requests of this process. */
  lastHour(backendId: string): HourCount {
    return this.#hour.read(this.#deps.clock.monotonicMs(), backendId)
  }

  /** How long ago the last request to a configured backend ended in this process; undefined if none did. */
  usedAgoMs(backendId: string): number | undefined {
    const lastMs = this.#hour.lastMs(backendId)
    return lastMs === undefined ? undefined : this.#deps.clock.monotonicMs() - lastMs
  }

  /** Everything the page shows, at most ten seconds old. */
  read(): Promise<ServiceStatus> {
    const nowMs = this.#deps.clock.monotonicMs()
    if (this.#read !== undefined && nowMs - this.#read.atMs < freshMs) return this.#read.status
    const status = this.#computeStatus(this.#deps.clock.nowMs())
    this.#read = { status, atMs: nowMs }
    // A failed read is not cached.
    status.catch(() => {
      this.#read = undefined
    })
    return status
  }

  /** Drops the cached result, because an incident was written. */
  forget(): void {
    this.#read = undefined
  }

  /** Stores the counts. */
  async write(): Promise<void> {
    const counts = this.#tally.take()
    if (counts.length === 0) return
    const { store, clock } = this.#deps
    try {
      await store.addUptime(counts, dayOf(clock.nowMs() - uptimeDays * dayMs))
    } catch (error) {
      this.#tally.putBack(counts)
      this.#deps.onFailed(error)
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#timer?.cancel()
    this.#timer = undefined
    await this.write()
  }

  #schedule(): void {
    this.#timer = this.#deps.clock.after(writeEveryMs, () => {
      void this.write().finally(() => {
        if (this.#timer !== undefined) this.#schedule()
      })
    })
  }

  /** Whether a request failed through no fault of its caller or of backends only its account has. */
  #isOurFault({ outcome, upstream, profile }: Extract<ServiceEvent, { event: 'request' }>): boolean {
    if (outcome === 'answered' || outcome === 'client_closed' || outcome === 'upstream_credentials_rejected')
      return false
    const { status, source } = errorCatalog[outcome]
    if (status < 500) return false
    // No backend was tried; with an account's own backends cooling down, too. It is our fault only if our backends are.
    return upstream !== undefined || source === 'gateway' || this.#profileState(profile) === 'down'
  }

  /** The API, every profile, and every shared backend (contract 18.1). */
  async #computeStatus(nowMs: number): Promise<ServiceStatus> {
    const { store, profiles, backends } = this.#deps
    const days = shownDays(nowMs)
    const [health, stored, incidents] = await Promise.all([
      this.#deps.health(),
      store.listUptime(days[0]!),
      store.listIncidents(nowMs - incidentDays * dayMs, maxIncidents),
    ])
    const counts = addUp([...stored, ...this.#tally.list()])
    const daysOf = (kind: UptimeKind, name: string): readonly StatusDay[] =>
      days.map((day) => ({ day, share: shareOf(counts, { kind, name, day }) }))
    const components: StatusComponent[] = [
      { kind: 'api', name: 'API', ...apiState(health.serving()), days: [] },
      ...profiles.map((profile): StatusComponent => {
        const { id, backends: candidates } = profile
        const isShared = candidates.some((name) => backends.includes(name))
        const state = this.#profileState(id, (backend) => health.condition(backend))
        return { kind: 'profile', name: id, state, note: noteOf(profile, isShared), days: daysOf('profile', id) }
      }),
      ...backends.map((name): StatusComponent => {
        const { component, note } = describeBackend(health.condition(name), health.lastHour(name))
        return { kind: 'backend', name, state: component, note, days: daysOf('backend', name) }
      }),
    ]
    return { atMs: nowMs, indicator: indicatorOf(components, incidents), components, incidents }
  }

  #profileState(id: string, condition = this.#deps.condition): ComponentState {
    const { profiles, backends } = this.#deps
    const candidates =
      profiles.find((profile) => profile.id === id)?.backends.filter((name) => backends.includes(name)) ?? []
    if (candidates.length === 0) return 'operational'
    const usable = candidates.filter((name) => ['closed', 'half_open'].includes(condition(name).state)).length
    if (usable === 0) return 'down'
    return usable * 2 < candidates.length ? 'degraded' : 'operational'
  }
}

/** Who serves a profile without a public backend. */
function noteOf(profile: ShownProfile, isShared: boolean): string | undefined {
  if (isShared) return undefined
  return isServedByOwn(profile) ? 'runs on each account’s own providers' : 'has no backend that serves all accounts'
}

/** Nodes that stop are not counted. */
function apiState({
  nodes,
  of,
  reason,
}: ReturnType<ServiceHealth['serving']>): Pick<StatusComponent, 'state' | 'note'> {
  if (nodes === 0) return { state: 'down', note: reason }
  if (nodes === of) return { state: 'operational', note: undefined }
  return { state: 'degraded', note: `${of - nodes} of our ${of} servers cannot serve requests` }
}

function shareOf(counts: readonly UptimeCount[], of: Pick<UptimeCount, 'kind' | 'name' | 'day'>): number | undefined {
  const found = counts.find(({ kind, name, day }) => kind === of.kind && name === of.name && day === of.day)
  const total = found === undefined ? 0 : found.answered + found.failed
  return found === undefined || total === 0 ? undefined : found.answered / total
}
