import type { Conversation, Turn } from '../../domain/conversation.ts'
import type { JsonObject } from '../../domain/json.ts'
import type { Draft } from '../fields.ts'
import { readEncrypted } from './encrypted-reasoning.ts'
import type { ModelTraits } from './model-traits.ts'
import { isForced } from './write-tools.ts'

/** Thinking budget in tokens for each effort, for models that take a budget. */
const budgets: Readonly<Record<string, number>> = {
  minimal: 1_024,
  low: 2_048,
  medium: 8_192,
  high: 16_384,
  xhigh: 24_576,
  max: 24_576,
}
/** The smallest accepted budget, and how much of the answer must be left for text. */
const leastBudget = 1_024
const shareOfThinking = 0.8

/** Adds the thinking settings; returns whether the model will think. `maxTokens` limits thinking and text together. */
export function writeThinking(
  body: Draft<JsonObject>,
  conversation: Conversation,
  traits: ModelTraits,
  maxTokens: number,
): boolean {
  const effort = conversation.reasoning?.effort
  // A forced tool call and thinking exclude each other.
  if (effort === undefined || effort === 'none' || (traits.forcedTools && isForced(conversation.toolChoice)))
    return false
  if (traits.thinking === 'adaptive') {
    // Newer models hide their thinking unless asked.
    body['thinking'] = traits.highestEfforts ? { type: 'adaptive', display: 'summarized' } : { type: 'adaptive' }
    body['output_config'] = { ...(body['output_config'] as JsonObject | undefined), effort: effortFor(effort, traits) }
    return true
  }
  const budget = Math.min(budgets[effort] ?? budgets['medium']!, Math.floor(maxTokens * shareOfThinking))
  if (traits.thinking === 'never' || budget < leastBudget || lacksThoughts(conversation.turns)) return false
  body['thinking'] = { type: 'enabled', budget_tokens: budget }
  return true
}

function effortFor(effort: string, traits: ModelTraits): string {
  if (effort === 'low' || effort === 'medium' || effort === 'high') return effort
  if (effort === 'minimal') return 'low'
  if (effort === 'xhigh' || effort === 'max') return traits.highestEfforts ? effort : 'high'
  return 'medium'
}

/**
 * Whether the model is in the middle of tool calls whose thinking blocks are not available: it would reject thinking
 * now.
 */
function lacksThoughts(turns: readonly Turn[]): boolean {
  for (let position = turns.length - 1; position >= 0; position--) {
    const turn = turns[position]!
    if (turn.role === 'user') return false
    if (turn.role !== 'assistant') continue
    const [first] = turn.parts
    const isSealed =
      first?.type === 'reasoning' && first.sealed !== undefined && readEncrypted(first.sealed) !== undefined
    if (!isSealed && turn.parts.some(({ type }) => type === 'call')) return true
  }
  return false
}
