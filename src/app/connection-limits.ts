import { readFileSync } from 'node:fs'

/** How many connections of each kind one process may have open (contract 36.13). */
export interface ConnectionLimits {
  /** From clients of the API. */
  readonly api: number
  /** From clients of the API beyond `api`, for probes only (contract 29.8). */
  readonly probes: number
  /** From browsers, to the web app. */
  readonly web: number
  /** To all providers together. */
  readonly upstream: number
  /** To one provider with one credential: a provider that never answers leaves connections for the others. */
  readonly provider: number
}

/** Descriptors for everything but connections: the database, its log, stored answers, name lookups. */
const besidesConnections = 256
const most = { probes: 256, web: 2_000, upstream: 5_120 }
/** The part of the upstream connections that one provider may use. */
const perProvider = 0.8
/** A probe that evicts the oldest one is open before that one is closed. */
const perProbe = 2

/** The number of file descriptors that `configured` connections to the API need. */
export function wantedDescriptors(configured: number): number {
  return configured + most.probes * perProbe + most.web + most.upstream + besidesConnections
}

/**
 * Divides the file descriptors of the process, so that connections of one kind never use up all of them: without any
 * left, no caller can connect and no provider can be asked (contract 29.13).
 */
export function connectionLimits(configured: number, descriptors = wantedDescriptors(configured)): ConnectionLimits {
  const free = descriptors - Math.min(besidesConnections, Math.floor(descriptors / 4))
  const upstream = Math.min(most.upstream, Math.floor(free * 0.4))
  const web = Math.min(most.web, Math.floor(free / 10))
  const clients = free - upstream - web
  const probes = Math.min(most.probes, Math.floor(clients / 8))
  return {
    api: Math.min(configured, clients - probes * perProbe),
    probes,
    web,
    upstream,
    provider: Math.ceil(upstream * perProvider),
  }
}

/** The soft limit of open files; undefined if the system does not report it. */
export function openFilesLimit(): number | undefined {
  let text: string
  try {
    text = readFileSync('/proc/self/limits', 'utf8')
  } catch {
    // Not Linux.
    return undefined
  }
  const found = /^Max open files\s+(\d+)/m.exec(text)?.[1]
  return found === undefined ? undefined : Number(found)
}
