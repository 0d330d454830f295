import type { Conversation } from '../domain/conversation.ts'
import { ServiceError } from '../domain/errors.ts'
import { estimateTokens } from '../domain/estimate-tokens.ts'
import { fusionId, type Profile } from '../domain/profiles.ts'
import type { ExcludedBackend, PlannedPanel, RoutingCaller, RoutingDoubt, RoutingPlan } from '../domain/routing-plan.ts'
import { routingFor, type RoutingSort } from '../domain/routing-policy.ts'
import type { Need } from '../domain/upstream.ts'
import type { Clock } from '../runtime/clock.ts'
import { allowedProfile } from './auth/allowed-profile.ts'
import { unservedProfile } from './auth/unknown-profile.ts'
import { decideGate } from './fusion/engine/fusion-gate.ts'
import { planFusion } from './fusion/engine/plan.ts'
import { fusionDefaultsFor } from './fusion/fusion-planner.ts'
import { membersOf } from './fusion/members.ts'
import type { Backend, Backends, ModelRequest, Principal } from './ports.ts'
import {
  assertEncodable,
  assertSupported,
  relayRulesFor,
  CallerRequestWriter,
  writeFor,
  type BackendRequestDeps,
} from './request/backend-request.ts'
import { exhaustedError } from './request/exhausted-error.ts'
import type { BreakerKey } from './routing/backend-breakers.ts'
import type { BackendStatistics } from './routing/backend-statistics.ts'
import { Candidates } from './routing/candidates.ts'
import { assertCapable, needsOf, capableFirst } from './routing/capable-backends.ts'
import type { CircuitBreakers } from './routing/circuit-breakers.ts'
import { contentKindOf } from './routing/content-kind.ts'
import { planOrder } from './routing/dry-run-order.ts'
import type { LearnedLimits } from './routing/learned-limits.ts'
import { candidatesOptions } from './routing/open-candidates.ts'
import { readRoutingPreferences } from './routing/read-preferences.ts'
import { filteredBackends, matchingBackends } from './routing/routing-filters.ts'

export interface RoutingPlannerDeps extends BackendRequestDeps {
  readonly clock: Clock
  readonly profiles: readonly Profile[]
  readonly backends: Backends
  /** Which backends of a profile do not serve an account at all, and why: for operators alone. */
  readonly leftOut?: (profileId: string, accountId: string) => Promise<readonly ExcludedBackend[]>
  readonly breakers: CircuitBreakers
  readonly statistics: BackendStatistics
}

/** Who would send the request. */
interface PlannedCaller extends RoutingCaller {
  readonly limits?: Principal['limits']
}

/**
 * A dry run: shows where a request would go if it were sent now, using the functions that send requests (contract
 * 24.12, 7.28). Calls, admits, and changes nothing. The result holds for this moment and for what this process knows of
 * its backends.
 */
export async function planRouting(
  shared: RoutingPlannerDeps,
  { accountId, plan, limits }: PlannedCaller,
  request: ModelRequest,
): Promise<RoutingPlan> {
  const deps = { ...shared, learned: shared.learned.of(accountId) }
  let unserved: readonly ExcludedBackend[] = []
  let sort: RoutingSort | undefined
  let profileId = ''
  try {
    const { format, body } = request
    const conversation = deps.formats(format).readRequest(body)
    const profile = allowedProfile(deps.profiles, { plan, limits }, conversation, format)
    profileId = profile.id
    const routing = routingFor(profile.routing, readRoutingPreferences(body))
    ;({ sort } = routing)
    unserved = (await deps.leftOut?.(profile.id, accountId)) ?? []
    const connected = await deps.backends.forProfile(profile.id, accountId)
    if (connected.length === 0) throw unservedProfile(profile)
    unserved = [...filteredBackends(connected, routing), ...unserved]
    const served = matchingBackends(connected, routing, profile.id)
    assertSupported(conversation)
    const breakerKey = { accountId, contentKind: () => contentKindOf(conversation) }
    const panel = planPanel(deps, profile, { conversation, backends: served, breakerKey })
    const { capable: backends, doubtful } =
      panel === undefined
        ? assertCapable(served, conversation, deps.formats(format).inputField, deps.learned)
        : { capable: capableFirst(served, conversation, deps.learned) }
    const incapable = served.filter((backend) => !backends.includes(backend))
    if (panel === undefined) assertEncodable(request, conversation, backends, deps)
    const tokens = estimateTokens(conversation)
    const writer = new CallerRequestWriter(request, conversation, deps)
    const options = candidatesOptions(deps, { request, conversation, backends, doubtful, routing }, breakerKey)
    const order = planOrder({
      ...options,
      write: (backend) => writeFor(backend, writer).backend,
      laneOf: (endpoint) => (relayRulesFor(endpoint, request, deps.relays) === undefined ? 'translation' : 'relay'),
      doubtsOf: (backend) => doubtsOf(backend, needsOf(conversation), tokens, deps.learned),
    })
    const leftOut = incapable.map(({ id }): ExcludedBackend => ({ backend: id, reason: 'not_capable' }))
    return {
      profile: profileId,
      refusal:
        order.asked.length > 0 ? undefined : refusalOf(nothingLeft(new Candidates(options), profileId, deps.clock)),
      sort,
      panel,
      asked: order.asked,
      leftOut: [...order.leftOut, ...leftOut, ...unserved],
    }
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error
    return { profile: profileId, refusal: refusalOf(error), sort, panel: undefined, asked: [], leftOut: unserved }
  }
}

function refusalOf({ code, facts }: ServiceError): NonNullable<RoutingPlan['refusal']> {
  return { code, param: facts.param, words: facts.words, action: facts.action }
}

/** The error of a request for which no backend can be asked now. */
function nothingLeft(candidates: Candidates, profile: string, clock: Clock): ServiceError {
  return exhaustedError({ profile, attempts: [], retryCount: 0, candidates, unasked: [], nowMs: clock.nowMs() })
}

interface PanelQuestion {
  readonly conversation: Conversation
  readonly backends: readonly Backend[]
  readonly breakerKey: BreakerKey
}

/** The panel, if the profile deliberates and members are available. @throws ServiceError as a request would */
function planPanel(
  { breakers }: RoutingPlannerDeps,
  profile: Profile,
  { conversation, backends, breakerKey }: PanelQuestion,
): PlannedPanel | undefined {
  if (profile.id !== fusionId || !decideGate(conversation).run) return undefined
  const usable = backends.filter(({ id }) => breakers.availability(id, breakerKey).usable)
  if (usable.length === 0) return undefined
  const settings = fusionDefaultsFor({ backends, defaults: profile.fusion }, conversation.stream)()
  const { slots, reserves, writers } = planFusion({ conversation, members: membersOf(usable), settings })
  return {
    asked: slots.map(({ member }) => member.id),
    reserves: reserves.map(({ id }) => id),
    writers: writers.map(({ id }) => id),
  }
}

function doubtsOf(
  backend: Backend,
  needs: readonly Need[],
  tokens: number,
  learned: LearnedLimits,
): readonly RoutingDoubt[] {
  const doubts: RoutingDoubt[] = []
  const window = learned.windowOf(backend)
  if (window !== undefined && tokens > window) doubts.push('window_small')
  if (needs.some((need) => learned.lacks(backend, need))) doubts.push('refused_before')
  return doubts
}
