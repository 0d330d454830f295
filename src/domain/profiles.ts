import type { PresetName } from './fusion-presets.ts'

/** A public name with an ordered set of backends (contract 1.3). */
export interface Profile {
  readonly id: string
  readonly description: string
  /** Backends by id, in the order in which they are tried. */
  readonly backends: readonly string[]
  /** Whether it is served by whatever serves `svc-router/frontier`, what accounts brought themselves among it. */
  readonly isLikeFrontier?: boolean
  readonly premium: boolean
  /** Units of the month that one answered request takes, at least 1 (contract 5.17). */
  readonly quotaUnits: number
  /** Whether answers name the model of their backend in `model` instead of this profile (contract 2.31). */
  readonly reportsModel?: boolean
  /** The name of the vectors that its backends give; absent where it holds conversations. */
  readonly embeddings?: string
  /** What callers read as its price in money; nothing is charged by it. */
  readonly price?: Price
  /** How `svc-router/fusion` deliberates unless its caller says otherwise. */
  readonly fusion?: FusionDefaults
}

/** What an operator says of deliberations; whatever is absent is as the preset has it. */
export interface FusionDefaults {
  readonly preset?: PresetName
  /** How many answers are asked for. */
  readonly panelSize?: number
  /** Who is asked, by backend id or model; those that an account has not are passed over. */
  readonly panelModels?: readonly string[]
  /** Who judges, likewise. */
  readonly judgeModel?: string
  /** Whether callers read which models were asked. */
  readonly namesModels?: boolean
}

/** Money for a million tokens. */
export interface Price {
  /** Three letters, such as `USD`. */
  readonly currency: string
  readonly inputPerMillion: number
  /** Absent where there is no output to pay for. */
  readonly outputPerMillion?: number
}

/** The profile to use first (contract 1.3). */
export const frontierId = 'svc-router/frontier'
/** The premium profile, whose answers are deliberated. */
export const fusionId = 'svc-router/fusion'
/** Says to another svc-router behind a backend that a call is part of a fusion already: how many. */
export const fusionDepthHeader = 'x-svc-router-fusion-depth'
/** The server tool that a premium caller may attach (contract 16.1). */
export const fusionToolType = 'svc-router:fusion'
/** Attaches that tool for a client that cannot put it into its requests. */
export const attachedToolsHeader = 'x-svc-router-tools'
/** The function by which models call that tool. No tool of a caller may have this name, and no caller ever sees it called (contract 16.3). */
export const fusionFunctionName = 'svc_router_fusion'
/** Under which label and name a run of it stands in an answer, as if it were a call of a remote server's tool. */
export const fusionCallNames = { server_label: 'svc-router', name: 'fusion' } as const

/** A profile's name for clients that cannot send a slash (contract 2.30). */
export function aliasOf(id: string): string {
  return id.replaceAll('/', '-')
}

/** The profile of this name or, where only one could be meant, of this alias. */
export function profileNamed<Known extends Pick<Profile, 'id'>>(
  name: string,
  profiles: readonly Known[],
): Known | undefined {
  const exact = profiles.find(({ id }) => id === name)
  if (exact !== undefined) return exact
  const meant = profiles.filter(({ id }) => id.includes('/') && aliasOf(id) === name)
  return meant.length === 1 ? meant[0] : undefined
}

/** The closest known name to a mistyped one, within three edits and half of its length; undefined when nothing is near. */
export function nearest(name: string, known: readonly string[]): string | undefined {
  const farthest = 3
  let best: string | undefined
  // Every short name is near another short one: most of what was typed must be right.
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
