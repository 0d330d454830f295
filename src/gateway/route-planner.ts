import type { Conversation } from '../domain/conversation.ts'
import { ServiceError } from '../domain/errors.ts'
import { fusionId, type Profile } from '../domain/profiles.ts'
import type { Need } from '../domain/upstream.ts'
import type { LeftOut, PlannedPanel, RouteAsker, RouteDoubt, RoutePlan, RouteQuestion } from '../domain/route-plan.ts'
import { allowedProfile } from './allowed-profile.ts'
import { assertSayable, assertServed, relayFor, requestWriter, writeFor, type BodyParts } from './backend-body.ts'
import { estimateTokens } from './estimate-tokens.ts'
import { usualOf } from './fusing.ts'
import { decideGate } from './fusion/gate.ts'
import { membersOf } from './fusion/members.ts'
import { planFusion } from './fusion/plan.ts'
import type { Backend, Backends } from './ports.ts'
import type { Asker } from './routing/backend-breakers.ts'
import type { CircuitBreakers } from './routing/circuit-breakers.ts'
import { contentKindOf } from './routing/content-kind.ts'
import { assertCapable, needsOf, preferCapable } from './routing/capable-backends.ts'
import type { LearnedLimits } from './routing/learned-limits.ts'
import { planOrder } from './routing/plan-order.ts'
import { sampleRequest } from './routing/sample-request.ts'

export interface RoutePlannerParts extends BodyParts {
  readonly profiles: readonly Profile[]
  readonly backends: Backends
  /** Which backends of a profile do not serve an account at all, and why. */
  readonly leftOut: (profileId: string, accountId: string) => Promise<readonly LeftOut[]>
  readonly breakers: CircuitBreakers
}

/**
 * A dry run: shows where a request would go if it were sent now, using the functions that send requests. Calls,
 * admits, and changes nothing. The result holds for this moment and for what this process knows of its backends.
 */
export async function planRoute(
  parts: RoutePlannerParts,
  { accountId, plan }: RouteAsker,
  question: RouteQuestion,
): Promise<RoutePlan> {
  const request = sampleRequest(question)
  let unserved: readonly LeftOut[] = []
  try {
    const conversation = parts.formats(question.format).readRequest(request.body)
    const profile = allowedProfile(parts.profiles, { plan, limits: undefined }, conversation, question.format)
    unserved = await parts.leftOut(profile.id, accountId)
    const served = await parts.backends.forProfile(profile.id, accountId)
    if (served.length === 0) throw new ServiceError('no_provider_connected', { words: { profile: profile.id } })
    assertServed(conversation)
    const asker = { accountId, contentKind: () => contentKindOf(conversation) }
    const panel = planPanel(parts, profile, { conversation, backends: served, asker })
    const backends =
      panel === undefined
        ? assertCapable(served, conversation, question.format, parts.learned)
        : preferCapable(served, conversation, parts.learned)
    const incapable = served.filter((backend) => !backends.includes(backend))
    if (panel === undefined) assertSayable(request, conversation, backends, parts)
    const tokens = estimateTokens(conversation)
    const writer = requestWriter(request, conversation, parts)
    const order = planOrder({
      backends,
      breakers: parts.breakers,
      asker,
      write: (backend) => writeFor(backend, writer).backend,
      laneOf: (endpoint) => (relayFor(endpoint, request, parts.relays) === undefined ? 'translation' : 'relay'),
      doubtsOf: (backend) => doubtsOf(backend, needsOf(conversation), tokens, parts.learned),
    })
    const leftOut = incapable.map(({ id }): LeftOut => ({ backend: id, reason: 'not_capable' }))
    return { refusal: undefined, panel, asked: order.asked, leftOut: [...order.leftOut, ...leftOut, ...unserved] }
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error
    const { code, facts } = error
    return { refusal: { code, param: facts.param }, panel: undefined, asked: [], leftOut: unserved }
  }
}

interface PanelOf {
  readonly conversation: Conversation
  readonly backends: readonly Backend[]
  readonly asker: Asker
}

/** The panel, if the profile deliberates and members are available. @throws ServiceError as a request would */
function planPanel(
  { breakers }: RoutePlannerParts,
  profile: Profile,
  { conversation, backends, asker }: PanelOf,
): PlannedPanel | undefined {
  if (profile.id !== fusionId || !decideGate(conversation).run) return undefined
  const usable = backends.filter(({ id }) => breakers.availability(id, asker).usable)
  if (usable.length === 0) return undefined
  const settings = usualOf({ backends, defaults: profile.fusion }, conversation.stream)()
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
): readonly RouteDoubt[] {
  const doubts: RouteDoubt[] = []
  const window = learned.windowOf(backend)
  if (window !== undefined && tokens > window) doubts.push('window_small')
  if (needs.some((need) => learned.lacks(backend, need))) doubts.push('refused_before')
  return doubts
}
