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
const steps = [...new Set(Object.values(budgets))].toSorted((one, other) => one - other)
/** How much of the answer may be thinking; the rest is left for text. */
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
  const budget = budgetFor(effort, maxTokens)
  if (traits.thinking === 'never' || budget === undefined || lacksThoughts(conversation.turns)) return false
  body['thinking'] = { type: 'enabled', budget_tokens: budget }
  return true
}

/**
 * One of a few budgets, so that a session whose answers may differ in length keeps its budget: another one would lose
 * the cache of all messages. Undefined if none fits.
 */
function budgetFor(effort: string, maxTokens: number): number | undefined {
  const most = Math.min(budgets[effort] ?? budgets['medium']!, Math.floor(maxTokens * shareOfThinking))
  return steps.findLast((step) => step <= most)
}

function effortFor(effort: string, traits: ModelTraits): string {
  if (effort === 'low' || effort === 'medium' || effort === 'high') return effort
  if (effort === 'minimal') return 'low'
  if (effort === 'xhigh' || effort === 'max') return traits.highestEfforts ? effort : 'high'
  return 'medium'
}

/**
 * Whether a call of the conversation has lost its thoughts, as in chat, which cannot send them back. The model rejects
 * thinking in the middle of such calls, and turning it off and on again with each task loses the cache of all messages
 * (contract 44.6). So it is off from the first such call to the end of the session.
 */
function lacksThoughts(turns: readonly Turn[]): boolean {
  return turns.some((turn) => {
    if (turn.role !== 'assistant' || !turn.parts.some(({ type }) => type === 'call')) return false
    const [first] = turn.parts
    const isSealed =
      first?.type === 'reasoning' && first.sealed !== undefined && readEncrypted(first.sealed) !== undefined
    return !isSealed
  })
}
