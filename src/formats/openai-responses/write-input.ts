import type { AssistantTurn, Conversation, InputPart, Json, JsonObject } from '../../domain/conversation.ts'
import type { Draft } from '../fields.ts'
import type { Dialect } from '../format.ts'
import { unsupported } from '../translatable.ts'

/** Writes the turns as input items (wire 6.1). @throws ServiceError where Responses cannot say what was asked */
export function writeInput(conversation: Conversation, dialect: Dialect): JsonObject[] {
  const items: JsonObject[] = []
  for (const turn of conversation.turns) {
    if (turn.role === 'assistant') writeAssistant(turn, dialect, items)
    else if (turn.role === 'tool') {
      const type = turn.kind === 'custom' ? 'custom_tool_call_output' : 'function_call_output'
      items.push({ type, call_id: turn.callId, output: writeContent(turn.parts) })
    } else {
      const role = turn.role === 'developer' && !dialect.developerRole ? 'system' : turn.role
      items.push({ type: 'message', role, content: writeContent(turn.parts) })
    }
  }
  return items
}

function writeAssistant(turn: AssistantTurn, dialect: Dialect, items: JsonObject[]): void {
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
      // Sealed reasoning goes back only to the backend that issued it, and that is the relay lane's business.
      if (dialect.replaysReasoning !== true || part.text === '') continue
      items.push({ type: 'reasoning', summary: [{ type: 'summary_text', text: part.text }] })
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

function writeMessage(content: readonly JsonObject[]): JsonObject {
  const first = content[0]
  const isPlain = content.length === 1 && first?.['type'] === 'output_text'
  return { type: 'message', role: 'assistant', content: isPlain ? first['text'] : content }
}

function writeContent(parts: readonly InputPart[]): Json {
  const first = parts[0]
  if (first === undefined) return ''
  return parts.length === 1 && first.type === 'text' ? first.text : parts.map(writePart)
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
          'A file is given by an id, which the backends of this profile cannot open. Send its content.',
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
