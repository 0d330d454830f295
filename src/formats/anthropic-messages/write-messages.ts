import type { AssistantTurn, Conversation, InputPart, ToolCall, Turn } from '../../domain/conversation.ts'
import { invalidRequest } from '../../domain/errors.ts'
import type { JsonObject } from '../../domain/json.ts'
import type { Draft } from '../fields.ts'
import type { ToolNames } from '../tool-names.ts'
import { ToolResults } from '../tool-results.ts'
import { writeReasoning } from './encrypted-reasoning.ts'
import type { ModelTraits } from './model-traits.ts'
import { ToolUseIds } from './tool-use-ids.ts'
import { isEncodable, writeInput, writeParts } from './write-parts.ts'

/** Result of a call that was never answered: providers reject a call without a result. */
const missingResult = 'aborted'
/** The first message if there is no user message: a conversation must begin with the user. */
const opener = 'Begin.'

type Role = 'user' | 'assistant' | 'system'
type Message = JsonObject & { readonly role: Role; readonly content: JsonObject[] }

export interface WrittenMessages {
  readonly system: JsonObject[]
  readonly messages: readonly Message[]
  /** The backend's names of all tools that were called. */
  readonly called: ReadonlySet<string>
}

/**
 * Writes the turns in this format's order: the user first, alternating roles, each result at the start of the turn
 * after its call, no empty content. @throws ServiceError if messages cannot express the request
 */
export function writeMessages(
  conversation: Conversation,
  traits: ModelTraits,
  names: ToolNames,
  replaysReasoning: boolean,
): WrittenMessages {
  const writer = new MessageList(conversation.turns, traits, names, replaysReasoning)
  const { instructions } = conversation.hints
  if (instructions !== undefined) writer.instruct([{ type: 'text', text: instructions }])
  writer.writeTurns()
  return writer.finish()
}

class MessageList {
  readonly #turns: readonly Turn[]
  readonly #traits: ModelTraits
  readonly #names: ToolNames
  readonly #replaysReasoning: boolean
  readonly #results: ToolResults
  readonly #ids = new ToolUseIds()
  readonly #system: JsonObject[] = []
  readonly #messages: Message[] = []
  readonly #called = new Set<string>()

  constructor(turns: readonly Turn[], traits: ModelTraits, names: ToolNames, replaysReasoning: boolean) {
    this.#turns = turns
    this.#traits = traits
    this.#names = names
    this.#replaysReasoning = replaysReasoning
    this.#results = new ToolResults(turns)
  }

  instruct(parts: readonly InputPart[]): void {
    for (const part of parts) {
      if (part.type === 'text' && isEncodable(part.text)) this.#system.push({ type: 'text', text: part.text })
    }
  }

  writeTurns(): void {
    for (let position = 0; position < this.#turns.length; position++) {
      const turn = this.#turns[position]!
      if (turn.role === 'assistant') this.#writeAssistant(turn)
      else if (turn.role === 'user') this.#say('user', writeParts(turn.parts))
      else if (turn.role !== 'tool') this.#writeInstruction(turn.parts)
      else if (!this.#results.isTaken(position)) {
        throw invalidRequest(
          'messages',
          'A tool output has no tool call with the same id before it. Send the call too.',
        )
      }
    }
  }

  finish(): WrittenMessages {
    const first = this.#messages[0]
    if (first?.role !== 'user') this.#messages.unshift({ role: 'user', content: [{ type: 'text', text: opener }] })
    this.#trimLast()
    return { system: this.#system, messages: this.#messages, called: this.#called }
  }

  #writeAssistant(turn: AssistantTurn): void {
    const content: JsonObject[] = []
    const results: JsonObject[] = []
    for (const part of turn.parts) {
      if (part.type === 'reasoning') {
        const block = writeReasoning(part, this.#replaysReasoning)
        if (block !== undefined) content.push(block)
      } else if (part.type === 'call') {
        const id = this.#ids.unique(part.id)
        content.push(this.#writeCall(part, id))
        results.push(writeResult(id, this.#results.take(part.id)?.parts))
      } else if (isEncodable(part.text)) content.push({ type: 'text', text: part.text })
    }
    this.#say('assistant', content)
    this.#say('user', results)
  }

  #writeCall(call: ToolCall, id: string): JsonObject {
    const name = this.#names.flatten(call.name, call.namespace)
    this.#called.add(name)
    return {
      type: 'tool_use',
      id,
      name,
      input: call.kind === 'custom' ? { input: call.arguments } : writeInput(call.arguments),
    }
  }

  /**
   * Instructions stay in place if the model accepts them there, which preserves the cache; otherwise they move to the
   * top.
   */
  #writeInstruction(parts: readonly InputPart[]): void {
    const last = this.#messages.at(-1)?.role
    const isPlaced = this.#traits.systemTurns && (last === 'user' || last === 'system')
    if (!isPlaced) return this.instruct(parts)
    this.#say('system', writeParts(parts.filter(({ type }) => type === 'text')))
  }

  #say(role: Role, blocks: readonly JsonObject[]): void {
    if (blocks.length === 0) return
    // Instructions may only be placed between the user and the answer.
    if (role === 'user' && this.#messages.at(-1)?.role === 'system') this.#system.push(...this.#messages.pop()!.content)
    const last = this.#messages.at(-1)
    if (last?.role !== role) this.#messages.push({ role, content: [...blocks] })
    else for (const block of blocks) last.content.push(block)
  }

  /** An answer to be continued may not end in whitespace. */
  #trimLast(): void {
    const last = this.#messages.at(-1)
    const block = last?.content.at(-1)
    if (last?.role !== 'assistant' || typeof block?.['text'] !== 'string') return
    last.content[last.content.length - 1] = { ...block, text: block['text'].trimEnd() }
  }
}

function writeResult(id: string, parts: readonly InputPart[] | undefined): JsonObject {
  const block: Draft<JsonObject> = { type: 'tool_result', tool_use_id: id }
  const content = parts === undefined ? missingResult : writeParts(parts)
  if (content.length > 0) block['content'] = content
  return block
}
