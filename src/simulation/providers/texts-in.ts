import { type Json, isObject } from '../../domain/json.ts'

/** Fields with content for the model, in all formats. */
const places: ReadonlySet<string> = new Set([
  'messages',
  'input',
  'contents',
  'content',
  'parts',
  'text',
  'system',
  'instructions',
  'systemInstruction',
  'system_instruction',
])

/** All text for the model in a request body of any format, joined. */
export function textsIn(body: Json | undefined): string {
  if (typeof body === 'string') return body
  if (Array.isArray(body)) return body.map((entry: Json) => textsIn(entry)).join('\n')
  if (!isObject(body)) return ''
  return Object.entries(body)
    .flatMap(([name, value]) => (places.has(name) ? [textsIn(value)] : []))
    .join('\n')
}
