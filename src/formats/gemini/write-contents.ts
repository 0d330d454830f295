import type { AssistantTurn, Conversation, InputPart, ToolCall } from '../../domain/conversation.ts'
import { invalidRequest } from '../../domain/errors.ts'
import { type Json, type JsonObject, isObject } from '../../domain/json.ts'
import type { Draft } from '../fields.ts'
import type { ToolNames } from '../tool-names.ts'
import { ToolResults } from '../tool-results.ts'
import { generationOf } from './model-generation.ts'
import { writePart } from './write-media.ts'

/** The placeholder that Google documents for a call without a signature, such as one made by another vendor's model. */
export const unsignedCall = 'skip_thought_signature_validator'
/** Response of a call that was never answered: Google rejects a call without a response. */
const missingResult = 'aborted'
/** Media types that a function response can contain, from Gemini 3 on. */
const responseTypes = /^(?:image\/(?:png|jpeg|webp)|application\/pdf|text\/plain)$/

type Role = 'user' | 'model'

/** The system instruction, and the conversation with alternating user and model roles. */
export interface WrittenContents {
  readonly system: readonly string[]
  readonly contents: readonly JsonObject[]
}

/**
 * Writes the turns as contents. System messages before the first other turn become the system instruction, later ones
 * stay in place; responses follow their calls directly. @throws ServiceError if Gemini cannot express the request
 */
export function writeContents(conversation: Conversation, names: ToolNames, model: string): WrittenContents {
  const { turns, hints } = conversation
  const writer = new ContentsWriter(names, model)
  const system: string[] = []
  if (hints.instructions !== undefined && hints.instructions !== '') system.push(hints.instructions)
  const results = new ToolResults(turns)
  for (let position = 0; position < turns.length; position++) {
    const turn = turns[position]!
    if (turn.role === 'assistant') writer.writeModel(turn, results)
    else if (turn.role === 'tool') {
      if (results.isTaken(position)) continue
      throw invalidRequest(
        'input',
        'A tool output has no tool call with the same call_id before it. Send the call too.',
      )
    } else if (turn.role !== 'user' && writer.contents.length === 0) {
      for (const part of turn.parts) if (part.type === 'text' && part.text !== '') system.push(part.text)
    } else for (const part of turn.parts) writer.writeUser(part)
  }
  const { contents } = writer
  // Google requires content, starting with the user.
  if (contents.length === 0) {
    return { system: [], contents: [{ role: 'user', parts: [{ text: system.join('\n\n') || ' ' }] }] }
  }
  if (contents[0]?.['role'] === 'model') contents.unshift({ role: 'user', parts: [{ text: ' ' }] })
  return { system, contents }
}

class ContentsWriter {
  readonly contents: JsonObject[] = []
  /** The current role, and its parts so far. */
  #role: Role | undefined
  #parts: JsonObject[] = []
  readonly #names: ToolNames
  /** From Gemini 3 on, calls have ids and must be signed, and responses can contain images. */
  readonly #isRecent: boolean

  constructor(names: ToolNames, model: string) {
    this.#names = names
    this.#isRecent = generationOf(model) >= 3
  }

  writeUser(part: InputPart): void {
    // Google rejects a part without text.
    if (part.type !== 'text' || part.text !== '') this.#add('user', writePart(part))
  }

  writeModel(turn: AssistantTurn, results: ToolResults): void {
    const calls: ToolCall[] = []
    let signature: string | undefined
    for (const part of turn.parts) {
      if (part.type === 'reasoning') {
        signature = part.sealed ?? signature
      } else if (part.type === 'call') {
        // Only the first of several parallel calls is signed.
        const missing = this.#isRecent && calls.length === 0 ? unsignedCall : undefined
        this.#add('model', this.#writeCall(part, signature ?? missing))
        signature = undefined
        calls.push(part)
      } else if (part.text !== '') this.#add('model', { text: part.text })
    }
    const overflow: InputPart[] = []
    for (const call of calls) this.#add('user', this.#writeResult(call, results.take(call.id)?.parts, overflow))
    for (const part of overflow) this.writeUser(part)
  }

  #writeCall(call: ToolCall, signature: string | undefined): JsonObject {
    const functionCall: Draft<JsonObject> = {
      name: this.#names.flatten(call.name, call.namespace),
      args: call.kind === 'custom' ? { input: call.arguments } : readArguments(call.arguments),
    }
    if (this.#isRecent && call.id !== '') functionCall['id'] = call.id
    return signature === undefined ? { functionCall } : { functionCall, thoughtSignature: signature }
  }

  /** Parts that the response cannot contain are added to `beside`. */
  #writeResult(call: ToolCall, parts: readonly InputPart[] | undefined, overflow: InputPart[]): JsonObject {
    const texts: string[] = []
    const held: JsonObject[] = []
    for (const part of parts ?? []) {
      if (part.type === 'text') {
        texts.push(part.text)
        continue
      }
      const written = writePart(part)
      if (this.#isRecent && fitsResponse(written)) held.push(written)
      else overflow.push(part)
      texts.push(`[${part.type}]`)
    }
    const functionResponse: Draft<JsonObject> = {
      name: this.#names.flatten(call.name, call.namespace),
      response: { output: parts === undefined ? missingResult : texts.join('\n') },
    }
    if (this.#isRecent && call.id !== '') functionResponse['id'] = call.id
    if (held.length > 0) functionResponse['parts'] = held
    return { functionResponse }
  }

  #add(role: Role, part: JsonObject): void {
    if (this.#role !== role) {
      this.#role = role
      this.#parts = []
      this.contents.push({ role, parts: this.#parts })
    }
    this.#parts.push(part)
  }
}

function fitsResponse(part: JsonObject): boolean {
  const data = part['inlineData']
  const type = isObject(data) ? data['mimeType'] : undefined
  return typeof type === 'string' && responseTypes.test(type)
}

/** Arguments must be an object there; anything else is wrapped so that the model can still read it. */
function readArguments(text: string): JsonObject {
  if (text.trim() === '') return {}
  try {
    const value = JSON.parse(text) as Json
    return isObject(value) ? value : { arguments: value }
  } catch {
    return { arguments: text }
  }
}
