import type { CacheLifetime } from '../../domain/conversation.ts'
import { type Json, type JsonObject, isObject } from '../../domain/json.ts'
import { partsAfter, type MarkInsertion } from '../cache/insert-marks.ts'
import {
  type BlockPlace,
  cacheControl,
  isForcedChoice,
  isMarkableText,
  lifetimeOf,
  PlacedBlocks,
  type PlacedOutline,
  TurnBounds,
} from '../cache/placed-blocks.ts'
import { planMarks } from '../cache/plan-marks.ts'
import { type Draft, isArray } from '../fields.ts'
import type { Dialect, WriteTarget } from '../format.ts'
import { gptVersion } from './gpt-version.ts'

export type MarkStyle = NonNullable<Dialect['cacheMarks']>

/** The first model with marks: before it, OpenAI's models cache every prefix and reject marks. */
const firstMarked = 5.06
/** Content that takes a mark in the request of either format. */
const markable = new Set<Json | undefined>(['image_url', 'input_image', 'file', 'input_file'])

/** How marks are written for a model; undefined if it takes none. */
export function markStyle({ cacheMarks, refusedFields }: Dialect, model: string): MarkStyle | undefined {
  if (cacheMarks === undefined || refusedFields.includes(cacheMarks)) return undefined
  return (cacheMarks === 'cache_control' ? /claude/i.test(model) : isMarkedGpt(model)) ? cacheMarks : undefined
}

/** Whether an OpenAI model accepts cache marks. */
export function isMarkedGpt(model: string): boolean {
  return gptVersion(model) >= firstMarked
}

/** The member that marks a part. */
export function markMember(style: MarkStyle, lifetime: CacheLifetime): JsonObject {
  return style === 'cache_control'
    ? { cache_control: cacheControl(lifetime) }
    : { prompt_cache_breakpoint: { mode: 'explicit' } }
}

/** The caller's mark on a part of either format; undefined if there is none. */
export function readMark(part: JsonObject): CacheLifetime | undefined {
  if (part['prompt_cache_breakpoint'] !== undefined && part['prompt_cache_breakpoint'] !== null) return '5m'
  return lifetimeOf(part['cache_control'])
}

/** Adds marks to the messages or items of a body that was just written. */
export function markBody(member: 'messages' | 'input', body: JsonObject, target: WriteTarget): void {
  const list = listIn(body, member)
  for (const { index, part, mark } of marksFor(member, body, target)) {
    const message = list[index] as Draft<JsonObject>
    const { content } = message
    if (part < 0) message['content'] = [{ type: textTypeOf(member), text: content, ...mark }]
    else Object.assign((content as JsonObject[])[part]!, mark)
  }
}

/** The marks to add to a request that is relayed. */
export function relayMarks(member: 'messages' | 'input', body: JsonObject, target: WriteTarget): MarkInsertion[] {
  const list = listIn(body, member)
  const last = list.length - 1
  const textType = textTypeOf(member)
  return marksFor(member, body, target).map(({ index, part, mark }) => {
    const partFromEnd = partsAfter(list[index], part)
    return { member, fromEnd: last - index, partFromEnd, mark: `,${JSON.stringify(mark).slice(1, -1)}`, textType }
  })
}

interface PlacedMark extends BlockPlace {
  /** The member that marks the block. */
  readonly mark: JsonObject
}

/** The marks to add to a request, where its model takes them. */
function marksFor(
  member: 'messages' | 'input',
  body: JsonObject,
  { dialect, model, cache }: WriteTarget,
): readonly PlacedMark[] {
  const style = markStyle(dialect, model)
  if (style === undefined || cache?.addsMarks !== true) return []
  const outline = outlineOf(member, body, style)
  const { marks } = planMarks(outline, cache)
  // Models with another style mark the newest message themselves: only the end of the instructions is worth a mark.
  const wanted = style === 'cache_control' ? marks : marks.filter(({ reason }) => reason === 'instructions')
  return wanted.map(({ at, lifetime }) => {
    const { index, part } = outline.placed.placeOf(at)
    return { index, part, mark: markMember(style, lifetime) }
  })
}

/** The type of a text in the content of a message. */
function textTypeOf(member: 'messages' | 'input'): string {
  return member === 'messages' ? 'text' : 'input_text'
}

/**
 * The parts of messages or items in their order. Tools get no mark and count as one block; neither do answers and
 * calls.
 */
function outlineOf(member: 'messages' | 'input', body: JsonObject, style: MarkStyle): PlacedOutline {
  const list = listIn(body, member)
  const tools = listIn(body, 'tools')
  const placed = new PlacedBlocks()
  const { blocks } = placed
  if (tools.length > 0) placed.add(-1, -1, false, undefined)
  const toolsEnd = blocks.length
  let systemEnd = -1
  const bounds = new TurnBounds(toolsEnd)
  for (let index = 0; index < list.length; index += 1) {
    const entry = list[index]
    if (!isObject(entry)) continue
    const isInstruction = entry['role'] === 'system' || entry['role'] === 'developer'
    if (systemEnd < 0 && !isInstruction && entry['type'] !== 'additional_tools') systemEnd = blocks.length
    const isAnswer = isAnswered(entry)
    const from = blocks.length
    addContent(placed, index, entry, isAnswer)
    bounds.add(isAnswer, from, blocks.length)
  }
  let taken = blocks.filter(({ lifetime }) => lifetime !== undefined).length
  if (style === 'cache_control') taken += countToolMarks(tools) + placed.addAutomatic(body['cache_control'])
  if (systemEnd < 0) systemEnd = blocks.length
  const forcesCall = isForcedChoice(body['tool_choice'])
  const { answerStart, end } = bounds
  return { placed, blocks, toolsEnd, systemEnd, forcesCall, answerStart, end, taken }
}

/** The caller's marks on tools, in either spelling. */
function countToolMarks(tools: readonly Json[]): number {
  let count = 0
  for (const tool of tools) {
    if (!isObject(tool)) continue
    if (lifetimeOf(tool['cache_control']) !== undefined) count += 1
    const { function: named } = tool
    if (isObject(named) && lifetimeOf(named['cache_control']) !== undefined) count += 1
  }
  return count
}

function listIn(body: JsonObject, member: string): readonly Json[] {
  const list = body[member]
  return isArray(list) ? list : []
}

/** Whether the model wrote the entry. */
function isAnswered({ role, type }: JsonObject): boolean {
  return role === 'assistant' || type === 'reasoning' || type === 'function_call' || type === 'custom_tool_call'
}

function addContent(placed: PlacedBlocks, index: number, { content }: JsonObject, isAnswer: boolean): void {
  if (!isArray(content)) {
    const isMarkable = !isAnswer && isMarkableText(content)
    placed.add(index, -1, isMarkable, undefined)
    return
  }
  for (let part = 0; part < content.length; part += 1) {
    const block = content[part]
    if (!isObject(block)) continue
    const { type, text } = block
    const lifetime = readMark(block)
    const isText = type === 'text' || type === 'input_text'
    const isMarkable = !isAnswer && lifetime === undefined && (isText ? isMarkableText(text) : markable.has(type))
    placed.add(index, part, isMarkable, lifetime)
  }
}
