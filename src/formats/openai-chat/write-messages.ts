import type { AssistantTurn, CacheLifetime, Conversation, InputPart } from '../../domain/conversation.ts'
import { invalidRequest } from '../../domain/errors.ts'
import type { Json, JsonObject } from '../../domain/json.ts'
import { unsupported } from '../assert-translatable.ts'
import { isMarkableText } from '../cache/placed-blocks.ts'
import { wrapInput } from '../custom-tools.ts'
import type { Draft } from '../fields.ts'
import type { Dialect, WriteTarget } from '../format.ts'
import { type MarkStyle, markMember, markStyle } from '../openai/cache-marks.ts'
import { resultText } from '../result-text.ts'
import type { ToolNames } from '../tool-names.ts'
import { ToolResults } from '../tool-results.ts'

/** Result of a call that was never answered: providers reject a call without a result. */
const missingResult = 'aborted'

/**
 * Writes the turns as messages. Results directly follow their calls, in the calls' order; their non-text parts go into
 * one user message after the last result (contract 11.16). @throws ServiceError if chat cannot express the request
 */
export function writeMessages(conversation: Conversation, target: WriteTarget, names: ToolNames): JsonObject[] {
  const { turns, hints } = conversation
  const { dialect } = target
  const style = markStyle(dialect, target.model)
  const messages: JsonObject[] = []
  if (hints.instructions !== undefined && hints.instructions !== '') {
    messages.push({ role: 'system', content: hints.instructions })
  }
  const results = new ToolResults(turns)
  for (let position = 0; position < turns.length; position++) {
    const turn = turns[position]!
    if (turn.role === 'assistant') {
      const message = writeAssistant(turn, dialect, names)
      if (message !== undefined) messages.push(message)
      writeResults(turn, results, style, messages)
    } else if (turn.role === 'tool') {
      if (results.isTaken(position)) continue
      throw invalidRequest(
        'input',
        'A tool output has no tool call with the same call_id before it. Send the call too.',
      )
    } else {
      const role = turn.role === 'developer' && !dialect.developerRole ? 'system' : turn.role
      const isMarked = style !== undefined && turn.parts.some((part) => markOf(part) !== undefined)
      const content = turn.role === 'user' || isMarked ? writeContent(turn.parts, style) : joinText(turn.parts)
      messages.push(turn.name === undefined ? { role, content } : { role, content, name: turn.name })
    }
  }
  return messages
}

function writeAssistant(turn: AssistantTurn, dialect: Dialect, names: ToolNames): JsonObject | undefined {
  const texts: string[] = []
  const refusals: string[] = []
  const reasoning: string[] = []
  const calls: Json[] = []
  for (const part of turn.parts) {
    if (part.type === 'text') texts.push(part.text)
    else if (part.type === 'refusal') refusals.push(part.text)
    else if (part.type === 'reasoning') reasoning.push(part.text)
    else {
      const text = part.kind === 'custom' ? wrapInput(part.arguments) : part.arguments || '{}'
      const called = { name: names.flatten(part.name, part.namespace), arguments: text }
      calls.push({ id: part.id, type: 'function', function: called })
    }
  }
  const thought = dialect.replaysReasoning === true ? reasoning.join('\n\n') : ''
  const isEmpty = texts.length === 0 && refusals.length === 0 && calls.length === 0 && thought === ''
  // A turn with only reasoning would reach the model as an empty answer of its own.
  if (isEmpty && turn.parts.length > 0) return undefined
  const isSilent = texts.length === 0 && (calls.length > 0 || refusals.length > 0)
  const message: Draft<JsonObject> = { role: 'assistant', content: isSilent ? null : texts.join('\n') }
  if (thought !== '') message['reasoning_content'] = thought
  if (refusals.length > 0) message['refusal'] = refusals.join('\n')
  if (calls.length > 0) message['tool_calls'] = calls
  return message
}

function writeResults(
  turn: AssistantTurn,
  results: ToolResults,
  style: MarkStyle | undefined,
  messages: JsonObject[],
): void {
  const attachments: InputPart[] = []
  for (const part of turn.parts) {
    if (part.type !== 'call') continue
    const result = results.take(part.id)
    const text = result === undefined ? missingResult : resultText(result.parts)
    const mark = result?.mark ?? result?.parts.findLast((one) => markOf(one) !== undefined)
    const lifetime = typeof mark === 'object' ? markOf(mark) : mark
    const isMarked = style !== undefined && lifetime !== undefined && isMarkableText(text)
    const content = isMarked ? [{ type: 'text', text, ...markMember(style, lifetime) }] : text
    messages.push({ role: 'tool', tool_call_id: part.id, content })
    for (const attachment of result?.parts ?? []) if (attachment.type !== 'text') attachments.push(attachment)
  }
  if (attachments.length > 0) messages.push({ role: 'user', content: writeContent(attachments, style) })
}

/** Many providers accept only a string in system messages. */
function joinText(parts: readonly InputPart[]): string {
  const first = parts[0]
  if (parts.length === 1 && first?.type === 'text') return first.text
  return parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('\n')
}

function writeContent(parts: readonly InputPart[], style: MarkStyle | undefined): Json {
  const first = parts[0]
  if (first === undefined) return ''
  const isMarked = style !== undefined && markOf(first) !== undefined
  return parts.length === 1 && first.type === 'text' && !isMarked ? first.text : parts.map((part) => mark(part, style))
}

function mark(part: InputPart, style: MarkStyle | undefined): JsonObject {
  const written = writePart(part)
  const lifetime = style === undefined ? undefined : markOf(part)
  const isBlank = part.type === 'text' && !isMarkableText(part.text)
  return style === undefined || lifetime === undefined || isBlank
    ? written
    : { ...written, ...markMember(style, lifetime) }
}

function markOf(part: InputPart): CacheLifetime | undefined {
  return part.type === 'audio' ? undefined : part.mark
}

function writePart(part: InputPart): JsonObject {
  switch (part.type) {
    case 'text':
      return { type: 'text', text: part.text }
    case 'image': {
      // Only Responses supports `original`.
      const detail = part.detail === 'original' ? 'high' : part.detail
      return { type: 'image_url', image_url: detail === undefined ? { url: part.url } : { url: part.url, detail } }
    }
    case 'audio':
      return { type: 'input_audio', input_audio: { data: part.data, format: part.format } }
    case 'file': {
      if (part.data === undefined) {
        throw unsupported(
          'input',
          'A file is referenced by an ID or a URL, which the backends of this profile cannot open. Send the content of the file.',
        )
      }
      const file: Draft<JsonObject> = { file_data: part.data }
      if (part.filename !== undefined) file['filename'] = part.filename
      return { type: 'file', file }
    }
  }
}
