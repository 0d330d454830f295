import { ServiceError } from '../../domain/errors.ts'
import type { ExcludedBackend, PlannedBackend, RoutingDoubt } from '../../domain/routing-plan.ts'
import type { Backend } from '../ports.ts'
import { formatsOf } from '../request/backend-request.ts'
import { Candidates, maxAttempts, type CandidatesOptions } from './candidates.ts'

/** The input of a dry run. */
export interface PlanOrderOptions extends CandidatesOptions {
  /**
   * The endpoint of a backend that would get the request.
   * @throws ServiceError if none of its formats can express it
   */
  readonly write: (backend: Backend) => Backend
  readonly laneOf: (endpoint: Backend) => PlannedBackend['lane']
  readonly doubtsOf: (backend: Backend) => readonly RoutingDoubt[]
}

/**
 * The order in which backends would be tried if each one failed, and why others are left out. Uses the same
 * candidates as a request does (`Failover`), but calls no backend and changes nothing.
 */
export function planOrder(options: PlanOrderOptions): {
  asked: readonly PlannedBackend[]
  leftOut: readonly ExcludedBackend[]
} {
  const { backends, breakers, breakerKey, choice, write, laneOf, doubtsOf } = options
  const candidates = new Candidates(options)
  const details = choice?.explain(backends, candidates.preferred)
  const asked: PlannedBackend[] = []
  const leftOut: ExcludedBackend[] = []
  /** Whether a request can be expressed depends only on the formats. */
  const unable = new Set<string>()
  for (let backend = candidates.next(); backend !== undefined; backend = candidates.next()) {
    const { id, model, simulated } = backend
    if (asked.length === maxAttempts) {
      leftOut.push({ backend: id, reason: 'enough_asked' })
      continue
    }
    const formats = formatsOf(backend)
    const endpoint = unable.has(formats) ? undefined : endpointFor(() => write(backend))
    if (endpoint === undefined) {
      unable.add(formats)
      leftOut.push({ backend: id, reason: 'cannot_say' })
      continue
    }
    const isOpen = !breakers.availability(id, breakerKey).usable
    const doubts = [...doubtsOf(backend), ...(isOpen ? (['open'] as const) : [])]
    asked.push({
      backend: id,
      model,
      format: endpoint.format,
      lane: laneOf(endpoint),
      simulated,
      doubts,
      ...details?.get(id),
    })
    if (doubts.includes('window_small')) candidates.keepLargerThan(backend.contextWindow)
    else candidates.failed(backend)
  }
  for (const { id } of backends) {
    if (asked.some(({ backend }) => backend === id) || leftOut.some(({ backend }) => backend === id)) continue
    leftOut.push(passedBy(id, options))
  }
  return { asked, leftOut }
}

/** Why a backend was never a candidate: not usable, or its window is no larger than one that was too small. */
function passedBy(backend: string, { breakers, breakerKey }: PlanOrderOptions): ExcludedBackend {
  const found = breakers.availability(backend, breakerKey)
  if (found.usable) return { backend, reason: 'window_small' }
  const { reason, untilMs } = found
  return { backend, reason, untilMs: Number.isFinite(untilMs) ? untilMs : undefined }
}

function endpointFor(write: () => Backend): Backend | undefined {
  try {
    return write()
  } catch (error) {
    if (error instanceof ServiceError) return undefined
    throw error
  }
}
