import type { Conversation, JsonObject } from '../domain/conversation.ts'
import { fusionId, type FusionDefaults, type Profile } from '../domain/profiles.ts'
import type { AnswerContext, ClientFormatId, Formats } from '../formats/format.ts'
import type { RelayRules } from '../formats/relay.ts'
import { fuseAlias } from './fuse-alias.ts'
import { FusedAnswer, type FusedAnswerParts, type FusedSurface } from './fused-answer.ts'
import { assertFusable, decideGate, type SkipReason } from './fusion/gate.ts'
import { membersOf } from './fusion/members.ts'
import { assertConnected, planFusion } from './fusion/plan.ts'
import { settingsFrom, type FusionSettings } from './fusion/settings.ts'
import { isUsers } from './fusion/users-words.ts'
import { withFusionNotes, type FusionNotes, type Recalled } from './fusion-notes.ts'
import { FusionSlots } from './fusion-slots.ts'
import { DeferredQuestions } from './fusion-tool/deferred-questions.ts'
import { readFusionTool, type FusionTool } from './fusion-tool/read-tool.ts'
import { answerWithTool } from './fusion-tool/tool-answer.ts'
import type { Backend, AllowedRequest, ModelRequest, Principal } from './ports.ts'
import { contentKindOf } from './routing/content-kind.ts'

/** Makes the answer to a request once it is admitted. */
type Fuser = (request: AllowedRequest, context: AnswerContext, totalMs: number) => FusedAnswer

/** A request in which several models may have a part. */
export interface FusableTurn {
  readonly profile: Profile
  readonly request: ModelRequest
  readonly conversation: Conversation
  /** Those of the profile that was asked for. */
  readonly backends: readonly Backend[]
}

/** Who deliberates where the tool is attached, and how unless its caller says otherwise. */
export interface FusionPool {
  readonly backends: readonly Backend[]
  readonly defaults: FusionDefaults | undefined
}

/** How such a request is answered: as it is now told, by `fuser`, or where there is none by one model alone. */
export interface FusedPlan extends Disposable {
  readonly turn: Pick<FusableTurn, 'request' | 'conversation' | 'backends'>
  readonly fuser?: Fuser
  /** What is said of how the answer came about, where one model alone gives it. */
  readonly report?: JsonObject
}

export interface FusingParts extends FusedAnswerParts {
  readonly formats: Formats
  readonly relays: (id: ClientFormatId) => RelayRules
  /** What deliberated turns leave for those that follow. */
  readonly notes?: FusionNotes | undefined
}

/** Whether several models may have a part in the answer: only then is more looked at. */
export function isFusable({ id }: Profile, { fusionTool, isFusionForced }: Conversation): boolean {
  return id === fusionId || fusionTool !== undefined || isFusionForced === true
}

/** Decides how requests for `svc-router/fusion`, and those that have the fusion tool, are answered. */
export class Fusing {
  readonly #parts: FusingParts
  readonly #deferred: DeferredQuestions
  readonly #slots = new FusionSlots()

  constructor(parts: FusingParts) {
    this.#parts = parts
    this.#deferred = new DeferredQuestions(parts.clock)
  }

  /**
   * How this request is answered. One model does it alone where the gate says so, the caller wants no tool called, or all
   * members have an open circuit breaker, of which a failover tells the caller best.
   * @throws ServiceError where what was attached cannot be what was meant, or no such answer can be what was asked for,
   * and `too_many_fusions`
   */
  async plan(principal: Principal, turn: FusableTurn, pool: () => Promise<FusionPool>): Promise<FusedPlan> {
    const { profile, request, conversation, backends } = turn
    const isAlias = profile.id === fusionId
    const depth = request.fusionDepth ?? 0
    const own: FusionPool = { backends, defaults: profile.fusion }
    const asked = isAlias || conversation.fusionTool === undefined ? own : await pool()
    const deliberating = asked.backends.length === 0 ? own : asked
    const tool = readFusionTool(conversation, usualOf(deliberating, conversation.stream))
    const recalled = this.#parts.notes?.recall(principal.accountId, conversation)
    let reason: SkipReason = 'not_allowed'
    if (isAlias) {
      assertFusable(conversation, depth)
      if (request.isOwnQuestion === true) return { turn, [Symbol.dispose]: () => {} }
      const gate = decideGate(conversation)
      reason = gate.run ? 'no_member_available' : gate.reason
      if (gate.run) {
        const settings = tool?.settings ?? usualOf(own, conversation.stream)()
        const asker = { accountId: principal.accountId, contentKind: () => contentKindOf(conversation) }
        const members = backends.filter(({ id }) => this.#parts.breakers.availability(id, asker).usable)
        if (members.length > 0) return this.#planAlias(principal, turn, { members, settings, recalled })
      }
    }
    if (tool !== undefined && isUsable(tool, conversation)) {
      assertFusable(conversation, depth, 'tools')
      return this.#planTool(principal, turn, { tool, members: deliberating.backends, recalled })
    }
    const alone = isAlias ? await this.#continued(turn, recalled) : turn
    return { turn: alone, report: { fusion: { ran: false, reason } }, [Symbol.dispose]: () => {} }
  }

  #planAlias({ accountId, plan }: Principal, turn: FusableTurn, of: AliasPlan): FusedPlan {
    const { members, settings, recalled } = of
    const { request, conversation } = turn
    assertConnected(settings, membersOf(turn.backends))
    assertPlannable(conversation, members, settings)
    const slot = this.#slots.take(accountId, plan)
    const remember = this.#parts.notes?.keeperOf(accountId, request, conversation)
    const alias = { backends: members, settings, pinned: recalled?.pinned }
    const make = (surface: FusedSurface) => fuseAlias(surface, alias)
    const fuser: Fuser = (admitted, context, totalMs) =>
      new FusedAnswer(this.#parts, {
        request: admitted,
        context,
        accountId,
        totalMs,
        backends: members,
        remember,
        make,
      })
    return { turn, fuser, [Symbol.dispose]: () => slot[Symbol.dispose]() }
  }

  #planTool({ accountId, plan }: Principal, turn: FusableTurn, of: ToolPlan): FusedPlan {
    const { tool, members, recalled } = of
    const { request, conversation } = turn
    assertConnected(tool.settings, membersOf(members))
    assertPlannable(conversation, members, tool.settings)
    const backends = affordable(conversation, pinnedFirst(turn.backends, recalled?.pinned), tool.settings)
    const last = conversation.turns.findLastIndex(isUsers)
    // What is found belongs to what the user said last, also where tools have answered since.
    const said = { ...conversation, turns: conversation.turns.slice(0, last + 1) }
    const remember = this.#parts.notes?.keeperOf(accountId, request, said)
    const decision = decideGate(conversation)
    const toolOf = {
      tool,
      backends,
      members,
      accountId,
      deferred: this.#deferred,
      isUsersTurn: decision.run || decision.reason === 'short_answer',
      memo: recalled?.memo,
      takeSlot: () => this.#slots.take(accountId, plan),
    }
    const make = (surface: FusedSurface) => answerWithTool(surface, toolOf)
    const everybody = [...new Map([...members, ...backends].map((backend) => [backend.id, backend])).values()]
    const fuser: Fuser = (admitted, context, totalMs) =>
      new FusedAnswer(this.#parts, {
        request: admitted,
        context,
        accountId,
        totalMs,
        backends: everybody,
        remember,
        make,
      })
    return { turn, fuser, [Symbol.dispose]: () => {} }
  }

  /** A turn that is not deliberated: it goes to whoever wrote before, with what was found then. */
  async #continued(turn: FusableTurn, recalled: Recalled | undefined): Promise<FusedPlan['turn']> {
    if (recalled === undefined) return turn
    const { formats, relays } = this.#parts
    const { request } = turn
    const continued = { ...turn, backends: pinnedFirst(turn.backends, recalled.pinned) }
    const noted = await withFusionNotes(request, relays(request.format), recalled.memo)
    if (noted === undefined) return continued
    return { ...continued, request: noted, conversation: formats(noted.format).readRequest(noted.body) }
  }
}

interface AliasPlan {
  readonly members: readonly Backend[]
  readonly settings: FusionSettings
  readonly recalled: Recalled | undefined
}

interface ToolPlan {
  readonly tool: FusionTool
  readonly members: readonly Backend[]
  readonly recalled: Recalled | undefined
}

/** The settings where a caller says nothing: the operator's, of which its own preset takes the place. */
export function usualOf({ backends, defaults = {} }: FusionPool, stream: boolean) {
  return (preset?: FusionSettings['preset'], maxLatencyMs?: number): FusionSettings => {
    const { panelSize: _, ...others } = defaults
    const meant = preset === undefined ? defaults : { ...others, preset }
    return settingsFrom(meant, membersOf(backends), stream, maxLatencyMs)
  }
}

/** Refuses settings that cannot be planned before any backend is asked. @throws ServiceError `invalid_request` */
function assertPlannable(conversation: Conversation, backends: readonly Backend[], settings: FusionSettings): void {
  planFusion({ conversation, members: membersOf(backends), settings })
}

/** Those who may answer under a limit in money: whose price is known. @throws ServiceError `invalid_request` where that is nobody */
function affordable(
  conversation: Conversation,
  backends: readonly Backend[],
  settings: FusionSettings,
): readonly Backend[] {
  if (settings.maxCostUsd === undefined) return backends
  assertPlannable(conversation, backends, settings)
  return backends.filter(({ usdPerMillion }) => usdPerMillion !== undefined)
}

function isUsable({ isAllowed, settings }: FusionTool, { toolChoice }: Conversation): boolean {
  return toolChoice?.type !== 'none' && (isAllowed || settings.mode === 'always')
}

/** The backends in their order, the one that wrote before in front: whether it is usable is seen when it is asked. */
function pinnedFirst(backends: readonly Backend[], id: string | undefined): readonly Backend[] {
  const pinned = backends.find((backend) => backend.id === id)
  return pinned === undefined ? backends : [pinned, ...backends.filter((backend) => backend !== pinned)]
}
