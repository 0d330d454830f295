import type { InputPart } from '../domain/conversation.ts'

/**
 * A tool result for formats that allow only text: its texts, and a placeholder for each other part. Never the data of
 * an image.
 */
export function resultText(parts: readonly InputPart[]): string {
  const texts = parts.flatMap((part) => (part.type === 'text' ? [part.text] : []))
  return texts.length > 0 ? texts.join('\n') : parts.map(({ type }) => `[${type}]`).join('\n')
}
