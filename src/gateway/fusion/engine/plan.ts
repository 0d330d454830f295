import type { Conversation } from '../../../domain/conversation.ts'
import { invalidRequest } from '../../../domain/errors.ts'
import { estimateTokens } from '../../../domain/estimate-tokens.ts'
import { fitsWindow, hasImages } from './measure-conversation.ts'
import type { FusionMember } from './ports.ts'
import type { FusionSettings } from './settings.ts'

/**
 * Members this much worse than the best, in points of quality, are not asked: weak answers make a panel worse (contract
 * 15.2).
 */
export const qualityFloor = 8

/** One requested answer. Samples of one family get different instructions, by the number of `angle`. */
export interface PlannedSlot {
  readonly member: FusionMember
  readonly angle: number
}

/** The slots of the panel, its reserves, and the writers, each best first. */
export interface FusionPlan {
  readonly slots: readonly PlannedSlot[]
  /** Not called yet; for slots that fail or are slow. */
  readonly reserves: readonly FusionMember[]
  /** Every usable member, named or pinned ones first: for judging, writing, and answering alone. */
  readonly writers: readonly FusionMember[]
  readonly judgeFirst?: FusionMember
  /** Whether a named model is currently not among the members; others take its part. */
  readonly isMissingNamed: boolean
  /** Whether one family gives all answers. */
  readonly isSelfPanel: boolean
}

/** The input of a plan. `pinned` is the backend that answered this session before. */
export interface PlanOptions {
  readonly conversation: Conversation
  readonly members: readonly FusionMember[]
  readonly settings: FusionSettings
  readonly pinned?: string
}

/**
 * Chooses the panel from the members that can process the conversation and are nearly as good as the best: first the
 * best, then new families, then new failure domains. If there are too few, some are asked more than once. Named
 * models that are not members are left out.
 * @throws ServiceError `invalid_request` if no member fits the cost limit
 */
export function planFusion({ conversation, members, settings, pinned }: PlanOptions): FusionPlan {
  const able = ableMembers(conversation, members, settings)
  const { panelModels: names = [], judgeModel } = settings
  const named = names.flatMap((name) => find(name, members) ?? [])
  const judgeFirst = judgeModel === undefined ? undefined : find(judgeModel, members)
  const best = Math.max(...able.map(({ quality }) => quality))
  const strong = able.filter(({ quality }) => quality >= best - qualityFloor)
  // Named models that cannot process this conversation are skipped; if none is left, the plan chooses.
  const pool = named.filter((member) => able.includes(member))
  const order = pool.length > 0 ? [...new Set(pool)] : spread(strong)
  const chosen = pool.length > 0 ? pool : order
  const size = pool.length > 0 ? pool.length : settings.panelSize
  const angles = new Map<string, number>()
  const slots = Array.from({ length: size }, (_, index): PlannedSlot => {
    const member = chosen[index % chosen.length]!
    const angle = angles.get(member.family) ?? 0
    angles.set(member.family, angle + 1)
    return { member, angle }
  })
  const first = able.find(({ id }) => id === pinned)
  const byQuality = able.toSorted((a, b) => b.quality - a.quality)
  return {
    slots,
    reserves: spread(
      strong,
      slots.map(({ member }) => member),
    ),
    writers: first === undefined ? byQuality : [first, ...byQuality.filter((member) => member !== first)],
    isSelfPanel: angles.size === 1,
    isMissingNamed: named.length < names.length || (judgeModel !== undefined && judgeFirst === undefined),
    ...(judgeFirst === undefined ? {} : { judgeFirst }),
  }
}

/** The members that can process this: images, the window, and a known price if the caller set a cost limit. */
function ableMembers(
  conversation: Conversation,
  members: readonly FusionMember[],
  { maxCostUsd, maxPanelTokens }: FusionSettings,
): readonly FusionMember[] {
  const priced = maxCostUsd === undefined ? members : members.filter(({ price }) => price !== undefined)
  if (priced.length === 0) {
    const problem = 'max_cost_usd cannot be enforced: no model has a known price. Send the request without it.'
    throw invalidRequest('parameters.max_cost_usd', problem)
  }
  const seesImages = hasImages(conversation)
  const inputTokens = estimateTokens(conversation)
  const able = priced.filter((member) => {
    if (seesImages && member.capabilities?.image_input !== true) return false
    return fitsWindow(member, inputTokens, conversation.sampling.maxOutputTokens ?? maxPanelTokens)
  })
  // No member is known to be able: a backend's own answer is better than our guess.
  return able.length > 0 ? able : priced
}

/**
 * Checks named models against all connected ones, available or not.
 * @throws ServiceError `invalid_request` with the `param` of the first unknown name
 */
export function assertConnected(
  { panelModels = [], judgeModel }: FusionSettings,
  connected: readonly FusionMember[],
): void {
  const fields = panelModels.map((name, index): [string, string] => [name, `parameters.analysis_models[${index}]`])
  if (judgeModel !== undefined) fields.push([judgeModel, 'parameters.model'])
  for (const [name, path] of fields) {
    if (find(name, connected) !== undefined) continue
    throw invalidRequest(path, `${path} names a model that no connected backend has. Use one that you have connected.`)
  }
}

function find(name: string, members: readonly FusionMember[]): FusionMember | undefined {
  return members.find(({ id, model }) => id === name || model === name)
}

/** The members not in `before`, each as different from its predecessors as possible. Stable for equal members. */
function spread(members: readonly FusionMember[], before: readonly FusionMember[] = []): FusionMember[] {
  const left = members.filter((member) => !before.includes(member))
  const families = new Set(before.map(({ family }) => family))
  const domains = new Set(before.map(({ failureDomain }) => failureDomain))
  const order: FusionMember[] = []
  const isBetter = (a: FusionMember, b: FusionMember): boolean => {
    const newFamily = Number(!families.has(a.family)) - Number(!families.has(b.family))
    if (newFamily !== 0) return newFamily > 0
    const newDomain = Number(!domains.has(a.failureDomain)) - Number(!domains.has(b.failureDomain))
    return newDomain === 0 ? a.quality > b.quality : newDomain > 0
  }
  while (left.length > 0) {
    const next = left.reduce((best, member) => (isBetter(member, best) ? member : best))
    left.splice(left.indexOf(next), 1)
    order.push(next)
    families.add(next.family)
    domains.add(next.failureDomain)
  }
  return order
}
