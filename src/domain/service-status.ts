import { impacts, stateOf, type Impact, type Incident } from './incidents.ts'
import type { UptimeKind } from './uptime.ts'

/** How one part does just now. `maintenance`: an operator took it out of use, so that it is no trouble by itself. */
export type ComponentState = 'operational' | 'degraded' | 'down' | 'maintenance'

/** One part of the service on the status page. */
export interface StatusComponent {
  readonly kind: UptimeKind | 'api'
  readonly name: string
  readonly state: ComponentState
  /** In a few words, where there is more to say than the state does. */
  readonly note: string | undefined
  /** Oldest first; empty for what is not counted. */
  readonly days: readonly StatusDay[]
}

/** One day of a part, in whole: nobody learns from it how much is asked. */
export interface StatusDay {
  readonly day: string
  /** Between 0 and 1; undefined where nothing was asked. */
  readonly share: number | undefined
}

/** Everything that the status page and its machine-readable forms say. */
export interface ServiceStatus {
  readonly atMs: number
  readonly indicator: Impact
  readonly components: readonly StatusComponent[]
  /** Newest first: those that are not over, and those of the last two weeks. */
  readonly incidents: readonly Incident[]
}

/** In one sentence, what the indicator says. */
export const indicatorWords: Readonly<Record<Impact, string>> = {
  none: 'Everything works',
  minor: 'Some parts have trouble',
  major: 'Important parts have trouble',
  critical: 'The service is down',
}

/** The worst of what the parts show and of what operators say. */
export function indicatorOf(components: readonly StatusComponent[], incidents: readonly Incident[]): Impact {
  const said = incidents.filter((incident) => stateOf(incident) !== 'resolved').map(({ impact }) => impact)
  return [...components.map(impactOf), ...said].reduce<Impact>(
    (worst, each) => (impacts.indexOf(each) > impacts.indexOf(worst) ? each : worst),
    'none',
  )
}

/** A backend that fails is what fallback is for: only profiles and the API itself are what callers see. */
function impactOf({ kind, state }: StatusComponent): Impact {
  if (state === 'operational' || state === 'maintenance') return 'none'
  if (kind === 'api') return 'critical'
  return kind === 'profile' && state === 'down' ? 'major' : 'minor'
}

/** The share over all days on which anything was asked; undefined where nothing was. */
export function shareOver(days: readonly StatusDay[]): number | undefined {
  const known = days.flatMap(({ share }) => (share === undefined ? [] : [share]))
  return known.length === 0 ? undefined : known.reduce((sum, share) => sum + share, 0) / known.length
}
