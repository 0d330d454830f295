import type { Conversation } from '../../domain/conversation.ts'
import type { JsonObject } from '../../domain/json.ts'
import { generationOf } from './model-generation.ts'

/** Token budgets that Google documents for the efforts of its own OpenAI-compatible endpoint. */
const budgets: Readonly<Record<string, number>> = {
  minimal: 1024,
  low: 1024,
  medium: 8192,
  high: 24_576,
  xhigh: 24_576,
  max: 24_576,
}
/** Smallest budget of a model whose thinking cannot be turned off. */
const leastBudget = 128

const levels: Readonly<Record<string, string>> = {
  none: 'minimal',
  minimal: 'minimal',
  low: 'low',
  medium: 'medium',
  high: 'high',
  xhigh: 'high',
  max: 'high',
}

/** `thinkingConfig` for the requested effort; undefined if none was requested or the model does not think. */
export function writeThinking({ reasoning }: Conversation, model: string): JsonObject | undefined {
  if (reasoning === undefined) return undefined
  const generation = generationOf(model)
  if (generation < 2.5) return undefined
  const { effort } = reasoning
  const includeThoughts = effort !== 'none'
  if (effort === undefined) return { includeThoughts }
  if (generation < 3) {
    const least = /pro/i.test(model) ? leastBudget : 0
    const thinkingBudget = effort === 'none' ? least : budgets[effort]
    return thinkingBudget === undefined ? { includeThoughts } : { includeThoughts, thinkingBudget }
  }
  const level = levels[effort]
  return level === undefined ? { includeThoughts } : { includeThoughts, thinkingLevel: levelFor(model, level) }
}

/** The larger models do not support `minimal`, and the first of them not `medium` either. */
function levelFor(model: string, level: string): string {
  if (!/pro/i.test(model)) return level
  if (level === 'minimal') return 'low'
  return level === 'medium' && /gemini-3-pro/i.test(model) ? 'high' : level
}
