import type { Conversation } from '../../domain/conversation.ts'
import type { Draft } from '../../formats/fields.ts'
import { outputLimit } from './measure.ts'
import type { PlannedSlot } from './plan.ts'
import type { FusionMember } from './ports.ts'
import { panelPrompt } from './prompts.ts'
import type { FusionSettings } from './settings.ts'
import { digestTools, withInstruction, withoutTools } from './transcript.ts'

/** Against what the caller allows its own answer: a reader of several needs a little more of each. */
const tokensFactor = 1.5
const wordsPerToken = 0.6
/** Samples of one model are spread by temperature, unless the caller said one. */
const temperatures = [undefined, 0.7, 1]

/** A sub-call's conversation: without tools, streams and whatever else is for the caller's own answer alone. */
export function subConversation(
  conversation: Conversation,
  { turns, hints }: Pick<Conversation, 'turns' | 'hints'>,
  sampling: Conversation['sampling'],
): Conversation {
  const { user, safetyIdentifier, serviceTier, instructions } = hints
  const kept: Draft<Conversation['hints']> = { store: false }
  if (user !== undefined) kept.user = user
  if (safetyIdentifier !== undefined) kept.safetyIdentifier = safetyIdentifier
  if (serviceTier !== undefined) kept.serviceTier = serviceTier
  if (instructions !== undefined) kept.instructions = instructions
  return { profile: conversation.profile, stream: false, streamUsage: true, tools: [], turns, hints: kept, sampling }
}

/** What members of the panel are asked. What does not differ between them is made once. */
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

  /** The conversation for one slot, asked of `member`. */
  requestFor({ angle }: PlannedSlot, member: FusionMember): Conversation {
    const { temperature, reasoningEffort } = this.#settings
    const asked = this.#conversation
    const tokens = this.#answerTokens()
    const words = Math.max(20, Math.floor(tokens * wordsPerToken))
    const prompt = panelPrompt(angle, words, this.#toolDigest !== undefined)
    const digest = this.#toolDigest === undefined ? '' : `\n\nTools of the final reply:\n${this.#toolDigest}`
    const sampling: Draft<Conversation['sampling']> = { maxOutputTokens: outputLimit(member, tokens) }
    const heat = temperature ?? asked.sampling.temperature ?? temperatures[angle % temperatures.length]
    // Models that reason refuse a temperature.
    if (heat !== undefined && member.capabilities?.reasoning !== true) sampling.temperature = heat
    const effort = reasoningEffort ?? asked.reasoning?.effort
    return {
      ...subConversation(asked, withInstruction(this.#flat, prompt + digest), sampling),
      ...(asked.outputFormat === undefined ? {} : { outputFormat: asked.outputFormat }),
      ...(effort === undefined || member.capabilities?.reasoning === false ? {} : { reasoning: { effort } }),
    }
  }

  #answerTokens(): number {
    const { maxOutputTokens } = this.#conversation.sampling
    const { maxPanelTokens } = this.#settings
    if (maxOutputTokens === undefined) return maxPanelTokens
    return Math.min(maxPanelTokens, Math.ceil(maxOutputTokens * tokensFactor))
  }
}
