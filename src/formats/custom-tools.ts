import type { Tool } from '../domain/conversation.ts'
import { type JsonObject, parseObject } from '../domain/json.ts'

/** A custom tool, whose input is free text, as a function whose only argument is that text (contract 11.7). */
export function customAsFunction(tool: Extract<Tool, { readonly type: 'custom' }>): {
  readonly description: string
  readonly parameters: JsonObject
} {
  const { definition, syntax } = tool.format ?? {}
  const grammar =
    typeof definition === 'string'
      ? `The input must follow this${typeof syntax === 'string' ? ` ${syntax}` : ''} grammar:\n${definition}`
      : ''
  return {
    description: [tool.description ?? '', grammar].filter((text) => text !== '').join('\n\n'),
    parameters: {
      type: 'object',
      properties: { input: { type: 'string', description: 'The whole input of the tool, as plain text.' } },
      required: ['input'],
      additionalProperties: false,
    },
  }
}

/** A custom tool's input as the arguments of that function. */
export function wrapInput(input: string): string {
  return JSON.stringify({ input })
}

/** The input in such arguments; arguments of another shape are taken as the input itself. */
export function unwrapInput(text: string): string {
  const input = parseObject(text)?.['input']
  return typeof input === 'string' ? input : text
}
