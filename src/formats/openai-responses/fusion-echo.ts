import { type Json, type JsonObject, isObject } from '../../domain/json.ts'
import { fusionCallNames, fusionToolType } from '../../domain/profiles.ts'
import { isArray } from '../fields.ts'

/** Maximum length of the summary of an earlier fusion, and of each text in it. */
const maxEchoCharacters = 2_400
const maxTextCharacters = 400
const maxTexts = 8

/** Whether an item is a fusion from an earlier answer of ours, which no provider knows. */
export function isFusionEcho(item: JsonObject): boolean {
  if (item['type'] === fusionToolType) return true
  const { server_label: label, name } = fusionCallNames
  return item['type'] === 'mcp_call' && item['server_label'] === label && item['name'] === name
}

/**
 * The summary of a fusion for models: the question and the outcome, in a few words. Undefined if the item contains
 * nothing that we would have written.
 */
export function summarizeFusionItem(item: JsonObject): string | undefined {
  const questions = texts(parse(item['arguments'])?.['questions'])
  const result = parse(item['output'])
  if (result === undefined || result['ran'] === false) return undefined
  const pieces = ['Several models were asked']
  if (questions.length > 0) pieces[0] += `: ${questions.map((question) => JSON.stringify(question)).join(', ')}`
  const { verdict, analysis } = result
  if (verdict === 'insufficient') pieces.push('None of their answers could be trusted')
  const found = isObject(analysis) ? analysis : {}
  const agreed = texts(found['consensus'])
  if (agreed.length > 0) pieces.push(`They agreed on: ${agreed.join('; ')}`)
  const topics = isArray(found['contradictions'])
    ? texts(found['contradictions'].map((entry) => (isObject(entry) ? (entry['topic'] ?? null) : null)))
    : []
  if (topics.length > 0) pieces.push(`They disagreed about: ${topics.join('; ')}`)
  return `[${pieces.join('. ').slice(0, maxEchoCharacters)}.]`
}

/** The items for a provider: each fusion replaced by its summary, or left out if it has none. */
export function withoutFusionItems(items: readonly Json[]): Json[] {
  return items.flatMap((item) => {
    if (!isObject(item) || !isFusionEcho(item)) return [item]
    const text = summarizeFusionItem(item)
    return text === undefined ? [] : [{ type: 'message', role: 'assistant', content: [{ type: 'output_text', text }] }]
  })
}

function parse(text: Json | undefined): JsonObject | undefined {
  if (typeof text !== 'string') return undefined
  try {
    const value = JSON.parse(text) as Json
    return isObject(value) ? value : undefined
  } catch {
    // The item was modified: ignore it.
    return undefined
  }
}

function texts(value: Json | undefined): string[] {
  if (!isArray(value)) return []
  return value
    .slice(0, maxTexts)
    .flatMap((text) => (typeof text === 'string' ? [text.slice(0, maxTextCharacters)] : []))
}
