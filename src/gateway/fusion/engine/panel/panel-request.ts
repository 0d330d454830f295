import type { Conversation } from '../../../../domain/conversation.ts'
import type { Draft } from '../../../../formats/fields.ts'
import { outputLimit } from '../measure-conversation.ts'
import type { PlannedSlot } from '../plan.ts'
import type { FusionMember } from '../ports.ts'
import { panelPrompt } from '../prompts.ts'
import type { FusionSettings } from '../settings.ts'
import { digestTools, withInstruction, withoutTools } from '../transcript.ts'

/** Factor on the caller's limit for its own answer: a reader of several answers needs a little more of each. */
const tokensFactor = 1.5
const wordsPerToken = 0.6
/** Samples of one model vary in temperature, unless the caller set one. */
const temperatures = [undefined, 0.7, 1]

/**
 * A sub-call's conversation: without tools, streaming, and everything else that is only for the caller's own answer.
 */
export function subConversation(
  conversation: Conversation,
  { turns, hints }: Pick<Conversation, 'turns' | 'hints'>,
  sampling: Conversation['sampling'],
): Conversation {
  const { user, safetyIdentifier, serviceTier, instructions } = hints
  const subHints: Draft<Conversation['hints']> = { store: false }
  if (user !== undefined) subHints.user = user
  if (safetyIdentifier !== undefined) subHints.safetyIdentifier = safetyIdentifier
  if (serviceTier !== undefined) subHints.serviceTier = serviceTier
  if (instructions !== undefined) subHints.instructions = instructions
  return {
    profile: conversation.profile,
    stream: false,
    streamUsage: true,
    tools: [],
    turns,
    hints: subHints,
    sampling,
  }
}

/** Builds the requests of panel members. Shared parts are built once. */
export class PanelRequests {
  readonly #conversation: Conversation
  readonly #settings: FusionSettings
  readonly #flat: Conversation
  readonly #toolDigest: string | undefined

  constructor(conversation: Conversation, settings: FusionSettings) {
    this.#conversation = conversation
    this.#settings = settings
    const usesTools = conversation.turns.some(
      ({ role, parts }) => role === 'tool' || (role === 'assistant' && parts.some(({ type }) => type !== 'text')),
    )
    this.#flat = usesTools ? { ...conversation, turns: withoutTools(conversation.turns) } : conversation
    this.#toolDigest = digestTools(conversation.tools)
  }

  /** The conversation for one slot, for `member`. */
  requestFor({ angle }: PlannedSlot, member: FusionMember): Conversation {
    const { temperature, reasoningEffort } = this.#settings
    const base = this.#conversation
    const tokens = panelTokens(this.#settings, base.sampling)
    const words = Math.max(20, Math.floor(tokens * wordsPerToken))
    const prompt = panelPrompt(angle, words, this.#toolDigest !== undefined)
    const digest = this.#toolDigest === undefined ? '' : `\n\nTools of the final reply:\n${this.#toolDigest}`
    const sampling: Draft<Conversation['sampling']> = { maxOutputTokens: outputLimit(member, tokens) }
    const sampled = temperature ?? base.sampling.temperature ?? temperatures[angle % temperatures.length]
    // Reasoning models reject a temperature.
    if (sampled !== undefined && member.capabilities?.reasoning !== true) sampling.temperature = sampled
    const effort = reasoningEffort ?? base.reasoning?.effort
    return {
      ...subConversation(base, withInstruction(this.#flat, prompt + digest), sampling),
      ...(base.outputFormat === undefined ? {} : { outputFormat: base.outputFormat }),
      ...(effort === undefined || member.capabilities?.reasoning === false ? {} : { reasoning: { effort } }),
    }
  }
}

/** How long the answer of a panel member may be, without its reasoning. */
export function panelTokens(
  { maxPanelTokens }: Pick<FusionSettings, 'maxPanelTokens'>,
  { maxOutputTokens }: Conversation['sampling'],
): number {
  if (maxOutputTokens === undefined) return maxPanelTokens
  return Math.min(maxPanelTokens, Math.ceil(maxOutputTokens * tokensFactor))
}
