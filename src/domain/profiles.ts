import type { PresetName } from './fusion-presets.ts'
import type { RoutingPolicy } from './routing-policy.ts'

/** A public model name for an ordered set of backends (contract 1.3). */
export interface Profile {
  readonly id: string
  readonly description: string
  /** The ids of its backends, in the order in which they are tried. */
  readonly backends: readonly string[]
  /** Whether it has the backends of `svc-router/frontier`, including those that accounts connected. */
  readonly isLikeFrontier?: boolean
  readonly premium: boolean
  /** Units of the month that one answered request takes, at least 1 (contract 5.17). */
  readonly quotaUnits: number
  /** Whether `model` in answers is the backend's model instead of this profile (contract 2.31). */
  readonly reportsModel?: boolean
  /** Whether answers say what they cost: in a header, or at the end of a stream (contract 42.11). */
  readonly reportsCost?: boolean
  /** Whether no cache marks are added to requests (contract 44.8). */
  readonly leavesMarks?: boolean
  /** The name of the vectors that its embeddings backends return; absent for conversations. */
  readonly embeddings?: string
  /** The price that clients are shown. Nothing is charged by it (contract 17.9). */
  readonly price?: Price
  /** How it chooses among its backends; absent: in their order. */
  readonly routing?: RoutingPolicy
  /** The defaults for requests to `svc-router/fusion`. */
  readonly fusion?: FusionDefaults
}

/** The operator's defaults for fusions. The preset fills in what is absent. */
export interface FusionDefaults {
  readonly preset?: PresetName
  /** The number of panel answers. */
  readonly panelSize?: number
  /** The panel members, by backend id or model. Those that an account does not have are skipped. */
  readonly panelModels?: readonly string[]
  /** The judges, in the same way. */
  readonly judgeModel?: string
  /** Whether clients see which models were asked. */
  readonly namesModels?: boolean
}

/** A price per million tokens. */
export interface Price {
  /** Three letters, such as `USD`. */
  readonly currency: string
  readonly inputPerMillion: number
  /** Absent if output is free. */
  readonly outputPerMillion?: number
}

/** The default profile (contract 1.3). */
export const frontierId = 'svc-router/frontier'
/** The premium profile that fusion answers. */
export const fusionId = 'svc-router/fusion'
/** Tells another svc-router behind a backend how many fusions a call is already part of. */
export const fusionDepthHeader = 'x-svc-router-fusion-depth'

/** The header, as name and value, for a call inside this many fusions; undefined if the depth is. */
export function fusionDepthHeaders(depth: number | undefined): readonly string[] | undefined {
  return depth === undefined ? undefined : [fusionDepthHeader, String(depth)]
}
/** The server tool that clients on a premium plan can attach (contract 16.1). */
export const fusionToolType = 'svc-router:fusion'
/** The header that attaches the tool, for clients that cannot add it to their requests. */
export const attachedToolsHeader = 'x-svc-router-tools'
/**
 * The function that models call to use the tool. Clients never see calls of it, and cannot name a tool of theirs like this
 * next to it (contract 16.3).
 */
export const fusionFunctionName = 'svc_router_fusion'
/** The names under which a run of the tool appears in an answer, as a call of a remote server's tool. */
export const fusionCallNames = { server_label: 'svc-router', name: 'fusion' } as const

/** Whether the providers that accounts connect serve it (contract 7.1). */
export function isServedByOwn({ id, isLikeFrontier }: Pick<Profile, 'id' | 'isLikeFrontier'>): boolean {
  return id === frontierId || isLikeFrontier === true
}

/** The profile's name for clients that cannot send a slash (contract 2.30). */
export function aliasOf(id: string): string {
  return id.replaceAll('/', '-')
}

/** The profile with this name or, if it is unambiguous, with this alias. */
export function profileNamed<Known extends Pick<Profile, 'id'>>(
  name: string,
  profiles: readonly Known[],
): Known | undefined {
  const exact = profiles.find(({ id }) => id === name)
  if (exact !== undefined) return exact
  const meant = profiles.filter(({ id }) => id.includes('/') && aliasOf(id) === name)
  return meant.length === 1 ? meant[0] : undefined
}

/** The known name closest to a mistyped one, within three edits and half of its length; undefined if none is close. */
export function nearest(name: string, known: readonly string[]): string | undefined {
  const farthest = 3
  let best: string | undefined
  // Short names are always close to each other, so most of the typed text must match.
  let bestDistance = Math.min(farthest, Math.floor(name.length / 2)) + 1
  const typed = name.slice(0, 100).toLowerCase()
  for (const candidate of known) {
    const shortName = candidate.slice(candidate.indexOf('/') + 1)
    const distance = Math.min(editDistance(typed, candidate), editDistance(typed, shortName))
    if (distance < bestDistance) {
      best = candidate
      bestDistance = distance
    }
  }
  return best
}

function editDistance(a: string, b: string): number {
  let previous = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let row = 1; row <= a.length; row++) {
    const current = [row]
    for (let column = 1; column <= b.length; column++) {
      const substitution = previous[column - 1]! + (a[row - 1] === b[column - 1] ? 0 : 1)
      current.push(Math.min(previous[column]! + 1, current[column - 1]! + 1, substitution))
    }
    previous = current
  }
  return previous[b.length]!
}
