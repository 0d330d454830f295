import type { CacheLifetime } from '../../domain/conversation.ts'
import { type Json, type JsonObject, isObject } from '../../domain/json.ts'
import {
  innerMarks,
  isForcedChoice,
  isMarkableText,
  lifetimeOf,
  PlacedBlocks,
  type PlacedOutline,
  TurnBounds,
} from '../cache/placed-blocks.ts'
import { isArray } from '../fields.ts'

/** Blocks that take a mark, besides text with content. */
const markable = new Set<Json | undefined>(['image', 'document', 'tool_use', 'tool_result'])

/** The blocks of a body in the order in which Anthropic caches them. Unknown shapes take no mark. */
export function outlineOf(body: JsonObject): PlacedOutline {
  const outline = new OutlineBuilder()
  const { tools, system, messages, tool_choice: choice, cache_control: automatic } = body
  if (isArray(tools)) for (let index = 0; index < tools.length; index += 1) outline.addTool(tools[index], index)
  const toolsEnd = outline.length
  outline.addContent('system', -1, system)
  const systemEnd = outline.length
  const list = isArray(messages) ? messages : []
  const bounds = new TurnBounds(systemEnd)
  for (let index = 0; index < list.length; index += 1) {
    const message = list[index]
    if (!isObject(message)) continue
    const from = outline.length
    outline.addContent('messages', index, message['content'])
    const { role, content } = message
    bounds.add(role === 'assistant', from, outline.length)
    if (role === 'user') bounds.addUser(!startsWithResult(content))
  }
  outline.addAutomatic(automatic)
  const { placed, taken } = outline
  const { answerStart, earlierTask, end } = bounds
  const forcesCall = isForcedChoice(choice)
  return { placed, blocks: placed.blocks, toolsEnd, systemEnd, forcesCall, answerStart, earlierTask, end, taken }
}

/** Results of tools come before everything else in a message. */
function startsWithResult(content: Json | undefined): boolean {
  const first = isArray(content) ? content[0] : undefined
  return isObject(first) && first['type'] === 'tool_result'
}

class OutlineBuilder {
  readonly placed = new PlacedBlocks()
  taken = 0

  get length(): number {
    return this.placed.blocks.length
  }

  addTool(tool: Json | undefined, index: number): void {
    const isPlain = isObject(tool) && isObject(tool['input_schema']) && tool['defer_loading'] !== true
    const isMarkable = isPlain && tool['cache_control'] === undefined
    this.#add(index, -1, isMarkable, isObject(tool) ? lifetimeOf(tool['cache_control']) : undefined)
  }

  addContent(member: 'system' | 'messages', index: number, content: Json | undefined): void {
    if (typeof content === 'string') this.#add(index, -1, isMarkableText(content), undefined)
    if (!isArray(content)) return
    for (let part = 0; part < content.length; part += 1) {
      const block = content[part]
      // The list of instructions has no messages around its blocks.
      if (member === 'system') this.#addBlock(member, part, -1, block)
      else this.#addBlock(member, index, part, block)
    }
  }

  addAutomatic(control: Json | undefined): void {
    this.taken += this.placed.addAutomatic(control)
  }

  #addBlock(member: 'system' | 'messages', index: number, part: number, block: Json | undefined): void {
    if (!isObject(block)) return this.#add(index, part, false, undefined)
    const { type, text, cache_control: control } = block
    const isMarkable = control === undefined && (type === 'text' ? isMarkableText(text) : markable.has(type))
    const own = lifetimeOf(control)
    if (member === 'system' || type === 'text') return this.#add(index, part, isMarkable, own)
    const inner = innerMarks(block)
    this.taken += own === undefined ? Math.max(0, inner.length - 1) : inner.length
    this.#add(index, part, isMarkable, own ?? (inner.includes('1h') ? '1h' : inner[0]))
  }

  #add(index: number, part: number, isMarkable: boolean, lifetime: CacheLifetime | undefined): void {
    if (lifetime !== undefined) this.taken += 1
    this.placed.add(index, part, isMarkable, lifetime)
  }
}
