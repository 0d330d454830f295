import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { AnswerEvent } from '../../src/domain/conversation.ts'
import type { Json, JsonObject } from '../../src/domain/json.ts'

const folder = join(import.meta.dirname, '..', 'fixtures', 'gemini')

/** Answers in the shapes that Google documents and its own client reads; the content is made up. */
export function recording(name: string): string {
  return readFileSync(join(folder, name), 'utf8')
}

export const recordings: readonly string[] = readdirSync(folder).filter((name) => name.endsWith('.sse'))

const reasons = { stop: 'STOP', tool_calls: 'STOP', length: 'MAX_TOKENS', content_filter: 'SAFETY' } as const

/** The answers of a Gemini stream with the content of these events, as far as Gemini can express it. */
export function asGemini(events: readonly AnswerEvent[]): JsonObject[] {
  const answers: JsonObject[] = []
  const texts = new Map<number, string>()
  for (const event of events) {
    if (event.type === 'call_arguments') texts.set(event.index, (texts.get(event.index) ?? '') + event.text)
  }
  for (const event of events) {
    if (event.type === 'text') answers.push(answer([{ text: event.text }]))
    else if (event.type === 'reasoning') answers.push(answer([{ text: event.text, thought: true }]))
    else if (event.type === 'call') {
      const args = JSON.parse(texts.get(event.index) ?? '{}') as Json
      answers.push(answer([{ functionCall: { name: event.name, id: event.id, args } }]))
    } else if (event.type === 'finish') {
      answers.push({ candidates: [{ index: 0, finishReason: reasons[event.reason] }] })
    } else if (event.type === 'usage') {
      const { inputTokens, outputTokens, cachedTokens, reasoningTokens } = event.usage
      answers.push({
        usageMetadata: {
          promptTokenCount: inputTokens,
          candidatesTokenCount: outputTokens - reasoningTokens,
          cachedContentTokenCount: cachedTokens,
          thoughtsTokenCount: reasoningTokens,
          totalTokenCount: inputTokens + outputTokens,
        },
      })
    }
  }
  return answers
}

/** A non-streaming answer with the same content. */
export function asWholeGemini(events: readonly AnswerEvent[]): JsonObject {
  const answers = asGemini(events)
  const parts = answers.flatMap((given) => (given['candidates'] as readonly JsonObject[] | undefined) ?? [])
  const finish = parts.find((candidate) => candidate['finishReason'] !== undefined)
  return {
    ...answers.find((given) => given['usageMetadata'] !== undefined),
    candidates: [
      {
        ...finish,
        content: {
          role: 'model',
          parts: parts.flatMap(({ content }) => (content as { parts: readonly Json[] } | undefined)?.parts ?? []),
        },
      },
    ],
  }
}

function answer(parts: readonly Json[]): JsonObject {
  return { candidates: [{ index: 0, content: { role: 'model', parts } }] }
}
