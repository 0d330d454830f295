import { impacts, stateOf, type Impact, type Incident } from './incidents.ts'
import type { UptimeKind } from './uptime.ts'

/** The state of one component. `maintenance`: an operator took it out of use, which does not count as a problem. */
export type ComponentState = 'operational' | 'degraded' | 'down' | 'maintenance'

/** A component on the status page. */
export interface StatusComponent {
  readonly kind: UptimeKind | 'api'
  readonly name: string
  readonly state: ComponentState
  /** A short note, if there is more to say than the state. */
  readonly note: string | undefined
  /** Oldest first; empty for components without a history. */
  readonly days: readonly StatusDay[]
}

/** One day of a component, as a share, so that traffic volumes stay private. */
export interface StatusDay {
  readonly day: string
  /** Between 0 and 1; undefined without requests. */
  readonly share: number | undefined
}

/** Everything that the status page and its machine-readable formats show. */
export interface ServiceStatus {
  readonly atMs: number
  readonly indicator: Impact
  readonly components: readonly StatusComponent[]
  /** Newest first: unresolved ones, and those of the last two weeks. */
  readonly incidents: readonly Incident[]
}

/** The indicator as a sentence. */
export const indicatorWords: Readonly<Record<Impact, string>> = {
  none: 'Everything works',
  minor: 'Some systems are degraded',
  major: 'Important systems are degraded',
  critical: 'The service is down',
}

/** The worst state of the components and the unresolved incidents. */
export function indicatorOf(components: readonly StatusComponent[], incidents: readonly Incident[]): Impact {
  const said = incidents.filter((incident) => stateOf(incident) !== 'resolved').map(({ impact }) => impact)
  return [...components.map(impactOf), ...said].reduce<Impact>(
    (worst, each) => (impacts.indexOf(each) > impacts.indexOf(worst) ? each : worst),
    'none',
  )
}

/** A failing backend alone is not a problem for clients, because others replace it. Only profiles and the API count. */
function impactOf({ kind, state }: StatusComponent): Impact {
  if (state === 'operational' || state === 'maintenance') return 'none'
  if (kind === 'api') return state === 'down' ? 'critical' : 'minor'
  return kind === 'profile' && state === 'down' ? 'major' : 'minor'
}

/** The share over all days with requests; undefined if there were none. */
export function shareOver(days: readonly StatusDay[]): number | undefined {
  const known = days.flatMap(({ share }) => (share === undefined ? [] : [share]))
  return known.length === 0 ? undefined : known.reduce((sum, share) => sum + share, 0) / known.length
}
