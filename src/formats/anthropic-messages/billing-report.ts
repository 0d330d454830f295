import { type Json, isObject } from '../../domain/json.ts'

const opening = 'x-anthropic-billing-header:'

/**
 * Whether a block of `system` is the one in which Claude Code reports about itself to Anthropic: it is not an
 * instruction, and only noise for other providers (contract 44.9).
 */
export function isBillingReport(block: Json): boolean {
  return isObject(block) && typeof block['text'] === 'string' && isBillingText(block['text'])
}

export function isBillingText(text: string): boolean {
  return text.startsWith(opening)
}
