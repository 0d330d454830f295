import type { AssistantPart, AssistantTurn, Conversation, InputPart } from '../../domain/conversation.ts'
import { invalidRequest, type ServiceError } from '../../domain/errors.ts'
import type { Json, JsonObject } from '../../domain/json.ts'
import { unsupported } from '../assert-translatable.ts'
import { wrapInput } from '../custom-tools.ts'
import type { Draft } from '../fields.ts'
import type { WriteTarget } from '../format.ts'
import { type MarkStyle, markMember, markStyle } from '../openai/cache-marks.ts'
import { resultText } from '../result-text.ts'
import type { ToolNames } from '../tool-names.ts'

/**
 * Writes the turns as input items (contract 11.7). `names` are those of an endpoint that supports only functions: it
 * gets function calls and text results. @throws ServiceError if Responses cannot express the request
 */
export function writeInput(
  conversation: Conversation,
  target: WriteTarget,
  names: ToolNames | undefined,
): JsonObject[] {
  const items: JsonObject[] = []
  const style = markStyle(target.dialect, target.model)
  /** Non-text parts of results for such an endpoint: they follow the last result. */
  let deferred: InputPart[] = []
  const show = (): void => {
    if (deferred.length > 0) items.push({ type: 'message', role: 'user', content: writeContent(deferred, style) })
    deferred = []
  }
  const called = new Set<string>()
  for (const turn of conversation.turns) {
    if (turn.role !== 'tool') show()
    if (turn.role === 'assistant') {
      for (const part of turn.parts) if (part.type === 'call') called.add(part.id)
      writeAssistant(turn, target, names, items)
    } else if (turn.role === 'tool') {
      if (!called.has(turn.callId)) throw orphanedOutput()
      if (names === undefined) {
        const type = turn.kind === 'custom' ? 'custom_tool_call_output' : 'function_call_output'
        items.push({ type, call_id: turn.callId, output: writeContent(turn.parts, undefined) })
      } else {
        items.push({ type: 'function_call_output', call_id: turn.callId, output: resultText(turn.parts) })
        deferred.push(...turn.parts.filter(({ type }) => type !== 'text'))
      }
    } else {
      const role = turn.role === 'developer' && !target.dialect.developerRole ? 'system' : turn.role
      items.push({ type: 'message', role, content: writeContent(turn.parts, style) })
    }
  }
  show()
  return items
}

/** Providers of Responses reject an output without its call. */
function orphanedOutput(): ServiceError {
  return invalidRequest('input', 'A tool output has no tool call with the same call_id before it. Send the call too.')
}

function writeAssistant(
  turn: AssistantTurn,
  target: WriteTarget,
  names: ToolNames | undefined,
  items: JsonObject[],
): void {
  let content: JsonObject[] = []
  const endMessage = (): void => {
    if (content.length > 0) items.push(writeMessage(content))
    content = []
  }
  for (const part of turn.parts) {
    if (part.type === 'text') content.push({ type: 'output_text', text: part.text, annotations: [] })
    else if (part.type === 'refusal') content.push({ type: 'refusal', refusal: part.text })
    else if (part.type === 'reasoning') {
      endMessage()
      const item = writeReasoning(part, target)
      if (item !== undefined) items.push(item)
    } else if (names !== undefined) {
      endMessage()
      const text = part.kind === 'custom' ? wrapInput(part.arguments) : part.arguments || '{}'
      const name = names.flatten(part.name, part.namespace)
      items.push({ type: 'function_call', call_id: part.id, name, arguments: text })
    } else {
      endMessage()
      const call: Draft<JsonObject> = { type: '', call_id: part.id, name: part.name }
      if (part.namespace !== undefined) call['namespace'] = part.namespace
      call['type'] = part.kind === 'custom' ? 'custom_tool_call' : 'function_call'
      if (part.kind === 'custom') call['input'] = part.arguments
      else call['arguments'] = part.arguments || '{}'
      items.push(call)
    }
  }
  endMessage()
}

/** Encrypted reasoning only for its issuer; plain reasoning if the model wants it back. */
function writeReasoning(
  { text, sealed }: Extract<AssistantPart, { readonly type: 'reasoning' }>,
  { dialect }: WriteTarget,
): JsonObject | undefined {
  if (sealed === undefined && (dialect.replaysReasoning !== true || text === '')) return undefined
  const summary = text === '' ? [] : [{ type: 'summary_text', text }]
  return sealed === undefined
    ? { type: 'reasoning', summary }
    : { type: 'reasoning', summary, encrypted_content: sealed }
}

function writeMessage(content: readonly JsonObject[]): JsonObject {
  const first = content[0]
  const isPlain = content.length === 1 && first?.['type'] === 'output_text'
  return { type: 'message', role: 'assistant', content: isPlain ? first['text'] : content }
}

function writeContent(parts: readonly InputPart[], style: MarkStyle | undefined): Json {
  const first = parts[0]
  if (first === undefined) return ''
  const isMarked = style !== undefined && first.type === 'text' && first.mark !== undefined
  return parts.length === 1 && first.type === 'text' && !isMarked ? first.text : parts.map((part) => mark(part, style))
}

function mark(part: InputPart, style: MarkStyle | undefined): JsonObject {
  const written = writePart(part)
  if (style === undefined || part.type === 'audio' || part.mark === undefined) return written
  return { ...written, ...markMember(style, part.mark) }
}

function writePart(part: InputPart): JsonObject {
  switch (part.type) {
    case 'text':
      return { type: 'input_text', text: part.text }
    case 'image':
      return { type: 'input_image', image_url: part.url, detail: part.detail ?? 'auto' }
    case 'audio':
      return { type: 'input_audio', input_audio: { data: part.data, format: part.format } }
    case 'file': {
      if (part.id !== undefined) {
        throw unsupported(
          'messages',
          'A file is referenced by an ID, which the backends of this profile cannot open. Send the content of the file.',
        )
      }
      const file: Draft<JsonObject> = { type: 'input_file' }
      if (part.data !== undefined) file['file_data'] = part.data
      if (part.url !== undefined) file['file_url'] = part.url
      if (part.filename !== undefined) file['filename'] = part.filename
      return file
    }
  }
}
