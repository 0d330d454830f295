import type { Conversation } from '../../domain/conversation.ts'
import type { JsonObject } from '../../domain/json.ts'
import { fusionId, type FusionDefaults, type Profile } from '../../domain/profiles.ts'
import type { AnswerContext, ClientFormatId, Formats } from '../../formats/format.ts'
import type { RelayRules } from '../../formats/relay.ts'
import type { SessionTurn } from '../cache/session-turn.ts'
import type { Backend, AllowedRequest, ModelRequest, Principal } from '../ports.ts'
import { contentKindOf } from '../routing/content-kind.ts'
import { answerWithFusion } from './answer-with-fusion.ts'
import { assertFusable, decideGate, type SkipReason } from './engine/fusion-gate.ts'
import { maxAnalysisTokens } from './engine/judge/judge.ts'
import { outputLimit } from './engine/measure-conversation.ts'
import { panelTokens } from './engine/panel/panel-request.ts'
import { assertConnected, planFusion } from './engine/plan.ts'
import { settingsFrom, type FusionSettings } from './engine/settings.ts'
import { isUserTurn } from './engine/user-turns.ts'
import { FusedAnswer, type FusedAnswerDeps, type FusedAnswerOptions, type FusionSession } from './fused-answer.ts'
import { withFusionNotes, type FusionNotes, type RecalledNotes } from './fusion-notes.ts'
import { FusionSlots } from './fusion-slots.ts'
import { membersOf } from './members.ts'
import { DeferredQuestions } from './tool/deferred-questions.ts'
import { readFusionTool, type FusionTool } from './tool/read-tool.ts'
import { answerWithTool } from './tool/tool-answer.ts'

/** Produces the answer to an admitted request. */
type FusionRunner = (request: AllowedRequest, context: AnswerContext, totalMs: number) => FusedAnswer

/** A request that several models may answer together. */
export interface FusableRequest {
  readonly profile: Profile
  readonly request: ModelRequest
  readonly conversation: Conversation
  /** The backends of the requested profile. */
  readonly backends: readonly Backend[]
  /** The request as a turn of its session; absent if no provider caches its prompt. */
  readonly session?: SessionTurn | undefined
}

/** The backends that deliberate when the tool is attached, and the default settings. */
export interface FusionPool {
  readonly backends: readonly Backend[]
  readonly defaults: FusionDefaults | undefined
}

/** The calls of a fusion. */
interface PlannedCalls {
  readonly count: number
  readonly backends: readonly Backend[]
  /** The highest output limit that the fusion gives one of them, whatever the request allows. */
  readonly outputTokens: number
}

/** How a request is answered: in the form of `fusable`, by `runner`, or by a single model if that is absent. */
export interface AnswerPlan extends Disposable {
  readonly fusable: Pick<FusableRequest, 'request' | 'conversation' | 'backends'>
  readonly runner?: FusionRunner
  /** The calls that it takes, if each succeeds; absent for one. */
  readonly calls?: PlannedCalls
  /** The report on how the answer was produced, if a single model gives it. */
  readonly report?: JsonObject
}

export interface FusionPlannerDeps extends FusedAnswerDeps {
  readonly formats: Formats
  readonly relays: (id: ClientFormatId) => RelayRules
  /** What deliberated requests leave for later ones. */
  readonly notes?: FusionNotes | undefined
}

/** Whether several models may answer this request together. Other requests skip the remaining checks. */
export function isFusable({ id }: Profile, { fusionTool, isFusionForced }: Conversation): boolean {
  return id === fusionId || fusionTool !== undefined || isFusionForced === true
}

/** Decides how to answer requests to `svc-router/fusion` and requests with the fusion tool. */
export class FusionPlanner {
  readonly #deps: FusionPlannerDeps
  readonly #deferred: DeferredQuestions
  readonly #slots = new FusionSlots()

  constructor(deps: FusionPlannerDeps) {
    this.#deps = deps
    this.#deferred = new DeferredQuestions(deps.clock)
  }

  /**
   * Plans the answer to a request. A single model answers if the gate says so, if the caller disallows tool calls, if
   * fusion is shed (contract 41.2), or if every member's circuit breaker is open (failover then gives the caller the
   * best error).
   * @throws ServiceError if the attached tool is invalid or a fused answer cannot satisfy the request,
   * `too_many_fusions`, and `load_shed`
   */
  async plan(principal: Principal, fusable: FusableRequest, pool: () => Promise<FusionPool>): Promise<AnswerPlan> {
    const { profile, request, conversation, backends } = fusable
    const isAlias = profile.id === fusionId
    const depth = request.fusionDepth ?? 0
    const own: FusionPool = { backends, defaults: profile.fusion }
    const chosenPool = isAlias || conversation.fusionTool === undefined ? own : await pool()
    const deliberating = chosenPool.backends.length === 0 ? own : chosenPool
    const tool = readFusionTool(conversation, fusionDefaultsFor(deliberating, conversation.stream))
    const recalled = this.#deps.notes?.recall(principal.accountId, conversation)
    const shed = this.#planShed(fusable, tool, recalled)
    if (shed !== undefined) return await shed
    let reason: SkipReason = 'not_allowed'
    if (isAlias) {
      assertFusable(conversation, depth)
      if (request.isOwnQuestion === true) return { fusable, [Symbol.dispose]: () => {} }
      const gate = decideGate(conversation)
      reason = gate.run ? 'no_member_available' : gate.reason
      if (gate.run) {
        const settings = tool?.settings ?? fusionDefaultsFor(own, conversation.stream)()
        const breakerKey = { accountId: principal.accountId, contentKind: () => contentKindOf(conversation) }
        const members = backends.filter(({ id }) => this.#deps.breakers.availability(id, breakerKey).usable)
        if (members.length > 0) return this.#planAlias(principal, fusable, { members, settings, recalled })
      }
    }
    if (tool !== undefined && isUsable(tool, conversation)) {
      assertFusable(conversation, depth, 'tools')
      return this.#planTool(principal, fusable, { tool, members: deliberating.backends, recalled })
    }
    return await this.#planAlone(fusable, recalled, reason)
  }

  /** The plan while fusion is shed, if it is (contract 41.2). @throws ServiceError `load_shed` if fusion is forced */
  #planShed(
    fusable: FusableRequest,
    tool: FusionTool | undefined,
    recalled: RecalledNotes | undefined,
  ): Promise<AnswerPlan> | undefined {
    const { shedder } = this.#deps
    if (shedder?.sheds('fusion') !== true || fusable.request.isOwnQuestion === true) return undefined
    if (tool?.isForced === true) throw shedder.rejection('fusion', 'requests that force the fusion tool')
    const gate = decideGate(fusable.conversation)
    return this.#planAlone(fusable, recalled, gate.run ? 'overloaded' : gate.reason)
  }

  /** A single model answers, and the report says why. */
  async #planAlone(
    fusable: FusableRequest,
    recalled: RecalledNotes | undefined,
    reason: SkipReason,
  ): Promise<AnswerPlan> {
    const alone = fusable.profile.id === fusionId ? await this.#continued(fusable, recalled) : fusable
    return { fusable: alone, report: { fusion: { ran: false, reason } }, [Symbol.dispose]: () => {} }
  }

  #planAlias({ accountId, plan }: Principal, fusable: FusableRequest, of: AliasPlan): AnswerPlan {
    const { members, settings, recalled } = of
    const { conversation } = fusable
    assertConnected(settings, membersOf(fusable.backends))
    assertPlannable(conversation, members, settings)
    const slot = this.#slots.take(accountId, plan)
    const remember = this.#deps.notes?.saverFor(accountId, conversation)
    const alias = { backends: members, settings, pinned: pinnedOf(fusable, recalled) }
    const make = (session: FusionSession) => answerWithFusion(session, alias)
    const runner = this.#runner({ accountId, backends: members, remember, make, turn: fusable.session })
    const calls = plannedCalls(callsOf(settings), members, settings, conversation)
    return { fusable, runner, calls, [Symbol.dispose]: () => slot[Symbol.dispose]() }
  }

  #planTool({ accountId, plan }: Principal, fusable: FusableRequest, of: ToolPlan): AnswerPlan {
    const { tool, members, recalled } = of
    const { conversation } = fusable
    assertConnected(tool.settings, membersOf(members))
    assertPlannable(conversation, members, tool.settings)
    const backends = withinCostLimit(
      conversation,
      pinnedFirst(fusable.backends, pinnedOf(fusable, recalled)),
      tool.settings,
    )
    const last = conversation.turns.findLastIndex(isUserTurn)
    // Findings belong to the last user message, even if tools have answered since.
    const upToUserTurn = { ...conversation, turns: conversation.turns.slice(0, last + 1) }
    const remember = this.#deps.notes?.saverFor(accountId, upToUserTurn)
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
    const make = (session: FusionSession) => answerWithTool(session, toolOf)
    const everybody = [...new Map([...members, ...backends].map((backend) => [backend.id, backend])).values()]
    const runner = this.#runner({ accountId, backends: everybody, remember, make, turn: fusable.session })
    // The calling model answers once more than it deliberates.
    const count = tool.settings.maxRuns * (callsOf(tool.settings) + 1) + 1
    const calls = plannedCalls(count, everybody, tool.settings, conversation)
    return { fusable, runner, calls, [Symbol.dispose]: () => {} }
  }

  /** Runs a planned fusion for the request that was admitted. */
  #runner(planned: Omit<FusedAnswerOptions, 'request' | 'context' | 'totalMs'>): FusionRunner {
    return (request, context, totalMs) => new FusedAnswer(this.#deps, { ...planned, request, context, totalMs })
  }

  /** A request that is not deliberated goes to the backend that wrote before, with the findings from then. */
  async #continued(fusable: FusableRequest, recalled: RecalledNotes | undefined): Promise<AnswerPlan['fusable']> {
    if (recalled === undefined) return fusable
    const { formats, relays } = this.#deps
    const { request } = fusable
    const continued = { ...fusable, backends: pinnedFirst(fusable.backends, recalled.pinned) }
    const noted = await withFusionNotes(request, relays(request.format), recalled.memo)
    if (noted === undefined) return continued
    return { ...continued, request: noted, conversation: formats(noted.format).readRequest(noted.body) }
  }
}

function plannedCalls(
  count: number,
  backends: readonly Backend[],
  settings: FusionSettings,
  { sampling }: Conversation,
): PlannedCalls {
  const tokens = Math.max(maxAnalysisTokens, panelTokens(settings, sampling))
  return { count, backends, outputTokens: Math.max(...backends.map((backend) => outputLimit(backend, tokens))) }
}

/** The panel, the judge's passes, and the writer. */
function callsOf({ panelModels, panelSize, extraJudgePasses }: FusionSettings): number {
  return (panelModels?.length ?? panelSize) + 1 + extraJudgePasses + 1
}

interface AliasPlan {
  readonly members: readonly Backend[]
  readonly settings: FusionSettings
  readonly recalled: RecalledNotes | undefined
}

interface ToolPlan {
  readonly tool: FusionTool
  readonly members: readonly Backend[]
  readonly recalled: RecalledNotes | undefined
}

/** The settings that apply if the caller sets none: the operator's defaults, or a preset that the caller names. */
export function fusionDefaultsFor({ backends, defaults = {} }: FusionPool, stream: boolean) {
  return (preset?: FusionSettings['preset'], maxLatencyMs?: number): FusionSettings => {
    const { panelSize: _, ...others } = defaults
    const meant = preset === undefined ? defaults : { ...others, preset }
    return settingsFrom(meant, membersOf(backends), stream, maxLatencyMs)
  }
}

/** Rejects settings that cannot be planned before any backend is called. @throws ServiceError `invalid_request` */
function assertPlannable(conversation: Conversation, backends: readonly Backend[], settings: FusionSettings): void {
  planFusion({ conversation, members: membersOf(backends), settings })
}

/**
 * The backends that may answer under a cost limit: those with a known price.
 * @throws ServiceError `invalid_request` if there are none
 */
function withinCostLimit(
  conversation: Conversation,
  backends: readonly Backend[],
  settings: FusionSettings,
): readonly Backend[] {
  if (settings.maxCostUsd === undefined) return backends
  assertPlannable(conversation, backends, settings)
  return backends.filter(({ price }) => price !== undefined)
}

function isUsable({ isAllowed, settings }: FusionTool, { toolChoice }: Conversation): boolean {
  return toolChoice?.type !== 'none' && (isAllowed || settings.mode === 'always')
}

/** The backend that wrote earlier in the conversation, or else the one that holds its cache (contract 45.7). */
function pinnedOf({ session, backends }: FusableRequest, recalled: RecalledNotes | undefined): string | undefined {
  return recalled?.pinned ?? session?.latestWarm(backends)?.id
}

/** The backends in order, with the one that wrote before first. Its availability is checked when it is called. */
function pinnedFirst(backends: readonly Backend[], id: string | undefined): readonly Backend[] {
  const pinned = backends.find((backend) => backend.id === id)
  return pinned === undefined ? backends : [pinned, ...backends.filter((backend) => backend !== pinned)]
}
