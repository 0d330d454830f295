import { ServiceError } from '../../domain/errors.ts'
import type { PriceCap, RequestRouting, RoutingFilter } from '../../domain/routing-policy.ts'
import { routingFilters } from '../../domain/routing-policy.ts'
import type { Backend } from '../ports.ts'

/** A backend that a requirement excludes. */
interface FilteredBackend {
  readonly backend: string
  readonly reason: RoutingFilter
}

type Excludes = (backend: Backend, routing: RequestRouting) => boolean

/** Whether each requirement excludes a backend. What a backend does not declare counts as not met (contract 7.25). */
const excludes: Readonly<Record<RoutingFilter, Excludes>> = {
  only: (backend, { only }) => only !== undefined && !isNamed(backend, only),
  ignore: (backend, { ignore }) => ignore !== undefined && isNamed(backend, ignore),
  regions: ({ region }, { regions }) => regions !== undefined && (region === undefined || !regions.includes(region)),
  zero_retention: (backend, { zeroRetention }) => zeroRetention === true && backend.zeroRetention !== true,
  max_price: (backend, { maxPrice }) => maxPrice !== undefined && isAbove(backend, maxPrice),
}

/** Whether a list names a backend, by its id or its model. */
export function isNamed({ id, model }: Backend, names: readonly string[]): boolean {
  return names.includes(id) || names.includes(model)
}

/** The first requirement that a backend does not meet; undefined if it meets all. */
function filterOf(backend: Backend, routing: RequestRouting): RoutingFilter | undefined {
  return routingFilters.find((filter) => excludes[filter](backend, routing))
}

/** The backends that do not meet a requirement, each with the first that it does not meet. */
export function filteredBackends(backends: readonly Backend[], routing: RequestRouting): readonly FilteredBackend[] {
  return backends.flatMap((backend) => {
    const reason = filterOf(backend, routing)
    return reason === undefined ? [] : [{ backend: backend.id, reason }]
  })
}

/** Whether there is any requirement: usually not, and backends need not be checked. */
function isRestricted({ only, ignore, regions, zeroRetention, maxPrice }: RequestRouting): boolean {
  return (
    only !== undefined ||
    ignore !== undefined ||
    regions !== undefined ||
    zeroRetention === true ||
    maxPrice !== undefined
  )
}

/** The backends that meet every requirement; possibly none. */
export function withoutFiltered(backends: readonly Backend[], routing: RequestRouting): readonly Backend[] {
  return isRestricted(routing) ? backends.filter((backend) => filterOf(backend, routing) === undefined) : backends
}

/**
 * The backends that meet every requirement of the profile and the request (contract 7.25).
 * @throws ServiceError `no_backend_matches` that names the requirements, if none does
 */
export function matchingBackends(
  backends: readonly Backend[],
  routing: RequestRouting,
  profile: string,
): readonly Backend[] {
  const matching = withoutFiltered(backends, routing)
  if (matching.length > 0 || backends.length === 0) return matching
  throw noneMatches(backends, routing, profile)
}

const filterWords: Readonly<Record<RoutingFilter, string>> = {
  only: 'not in "only"',
  ignore: 'in "ignore"',
  regions: 'not in one of the required regions',
  zero_retention: 'not declared to have zero retention',
  max_price: 'without a declared price within "max_price"',
}

function noneMatches(backends: readonly Backend[], routing: RequestRouting, profile: string): ServiceError {
  const counts = new Map<RoutingFilter, number>()
  for (const { reason } of filteredBackends(backends, routing)) counts.set(reason, (counts.get(reason) ?? 0) + 1)
  const reasons = routingFilters.flatMap((filter) => {
    const count = counts.get(filter)
    return count === undefined ? [] : [`${count} ${filterWords[filter]}`]
  })
  return new ServiceError('no_backend_matches', {
    param: 'routing',
    words: { profile, reasons: reasons.join(', ') },
  })
}

function isAbove({ usdPerMillion }: Backend, { input = Infinity, output = Infinity }: PriceCap): boolean {
  return usdPerMillion === undefined || usdPerMillion.input > input || usdPerMillion.output > output
}
