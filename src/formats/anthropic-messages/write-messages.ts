import type {
  AssistantTurn,
  CacheLifetime,
  Conversation,
  InputPart,
  ToolCall,
  Turn,
} from '../../domain/conversation.ts'
import { invalidRequest } from '../../domain/errors.ts'
import type { JsonObject } from '../../domain/json.ts'
import type { Draft } from '../fields.ts'
import type { ToolNames } from '../tool-names.ts'
import { ToolResults } from '../tool-results.ts'
import { writeReasoning } from './encrypted-reasoning.ts'
import type { ModelTraits } from './model-traits.ts'
import { ToolUseIds } from './tool-use-ids.ts'
import { isEncodable, withMark, writeInput, writeParts } from './write-parts.ts'

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
  /** Instructions that wait for the user's words, because they stand after them. */
  #pending: JsonObject[] = []

  constructor(turns: readonly Turn[], traits: ModelTraits, names: ToolNames, replaysReasoning: boolean) {
    this.#turns = turns
    this.#traits = traits
    this.#names = names
    this.#replaysReasoning = replaysReasoning
    this.#results = new ToolResults(turns)
  }

  /** Adds what the whole conversation is told before it begins. */
  instruct(parts: readonly InputPart[]): void {
    this.#system.push(...this.#write(parts.filter(isText)))
  }

  writeTurns(): void {
    for (let position = 0; position < this.#turns.length; position++) {
      const turn = this.#turns[position]!
      if (turn.role === 'assistant') this.#writeAssistant(turn)
      else if (turn.role === 'user') this.#say('user', this.#write(turn.parts))
      else if (turn.role !== 'tool') this.#writeInstruction(turn.parts)
      else if (!this.#results.isTaken(position)) {
        throw invalidRequest(
          'messages',
          'A tool output has no tool call with the same id before it. Send the call too.',
        )
      }
    }
    this.#place()
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
        content.push(this.#mark(this.#writeCall(part, id), part.mark))
        const result = this.#results.take(part.id)
        results.push(this.#mark(this.#writeResult(id, result?.parts), result?.mark))
      } else if (isEncodable(part.text)) {
        const mark = part.type === 'text' ? part.mark : undefined
        content.push(this.#mark({ type: 'text', text: part.text }, mark))
      }
    }
    this.#place()
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
   * Instructions before the first message are the system prompt. Later ones stand after the user's words, so that all
   * before them stays in the cache (contract 44.6): as a message of their own where the model takes one, otherwise as a
   * block of the user's message.
   */
  #writeInstruction(parts: readonly InputPart[]): void {
    if (this.#messages.length === 0) return this.instruct(parts)
    this.#pending.push(...this.#write(parts.filter(isText)))
    if (this.#messages.at(-1)?.role === 'user' && !this.#traits.systemTurns) this.#place()
  }

  /** Writes the waiting instructions after the user's last message. */
  #place(): void {
    const blocks = this.#pending
    if (blocks.length === 0) return
    this.#pending = []
    if (this.#traits.systemTurns && this.#messages.at(-1)?.role === 'user') this.#push('system', blocks)
    else this.#push('user', blocks.map(asNote))
  }

  #say(role: 'user' | 'assistant', blocks: readonly JsonObject[]): void {
    if (blocks.length === 0) return
    this.#push(role, blocks)
    if (role === 'user' && !this.#traits.systemTurns) this.#place()
  }

  #push(role: Role, blocks: readonly JsonObject[]): void {
    const last = this.#messages.at(-1)
    if (last?.role !== role) this.#messages.push({ role, content: [...blocks] })
    else for (const block of blocks) last.content.push(block)
  }

  #write(parts: readonly InputPart[]): JsonObject[] {
    return writeParts(parts, this.#traits.cacheMarks)
  }

  #mark(block: JsonObject, mark: CacheLifetime | undefined): JsonObject {
    return this.#traits.cacheMarks ? withMark(block, mark) : block
  }

  #writeResult(id: string, parts: readonly InputPart[] | undefined): JsonObject {
    const block: Draft<JsonObject> = { type: 'tool_result', tool_use_id: id }
    const content = parts === undefined ? missingResult : this.#write(parts)
    if (content.length > 0) block['content'] = content
    return block
  }

  /** An answer to be continued may not end in whitespace. */
  #trimLast(): void {
    const last = this.#messages.at(-1)
    const block = last?.content.at(-1)
    if (last?.role !== 'assistant' || typeof block?.['text'] !== 'string') return
    last.content[last.content.length - 1] = { ...block, text: block['text'].trimEnd() }
  }
}

function isText({ type }: InputPart): boolean {
  return type === 'text'
}

/** Marks an instruction as one where it stands among the user's words. */
function asNote(block: JsonObject): JsonObject {
  const { text } = block
  return { ...block, text: `<system>\n${typeof text === 'string' ? text : ''}\n</system>` }
}
