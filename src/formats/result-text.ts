import type { InputPart } from '../domain/conversation.ts'

/** A tool's result where only text can stand: its texts, or what it has instead, by kind. Never the data of an image. */
export function resultText(parts: readonly InputPart[]): string {
  const texts = parts.flatMap((part) => (part.type === 'text' ? [part.text] : []))
  return texts.length > 0 ? texts.join('\n') : parts.map(({ type }) => `[${type}]`).join('\n')
}
