import type { AssistantPart, Conversation, InputPart, Turn } from '../../domain/conversation.ts'
import { checksum, sampledChecksum } from '../../runtime/checksum.ts'
import type { ModelRequest } from '../ports.ts'

/** Items that have a digest of their own. */
const maxItems = 1_024
/** Members of a body that a provider reads before the conversation, or that decide whether, or how long, a cache holds it. */
const headMembers = [
  'tools',
  'functions',
  'system',
  'instructions',
  'tool_choice',
  'parallel_tool_calls',
  'reasoning',
  'reasoning_effort',
  'thinking',
  'output_config',
  'response_format',
  'text',
  'verbosity',
  'cache_control',
  'prompt_cache_retention',
]
const memberKinds: ReadonlyMap<string, 'head' | 'conversation'> = new Map([
  ...headMembers.map((name) => [name, 'head'] as const),
  ['messages', 'conversation'],
  ['input', 'conversation'],
])
const closingBracket = 0x5d
const shortText = 8_192
const space = 0x20
const nothing = Buffer.alloc(0)

/**
 * What is remembered of a prompt, in the order in which providers cache it: checksums, no text (contract 45.11).
 * They detect accidental changes, not forgeries. An account that forges one only deceives itself.
 */
export interface PromptDigest {
  readonly tools: number
  readonly system: number
  /** Settings that decide whether a cached conversation can be read: tool choice, reasoning, the format of answers. */
  readonly settings: number
  /** One for each item after the system prompt, at most `maxItems`. */
  readonly items: readonly number[]
  /** The number of items. */
  readonly count: number
  /** A sampled checksum of the body up to the end of the last item, and how many of its bytes are the conversation's. */
  readonly raw: number
  readonly rawLength: number
  /** Bytes up to the end of the tools, of the system prompt, and of all items. */
  readonly ends: readonly [tools: number, system: number, all: number]
}

/** A prompt with what is known of its text only while its request runs. */
export interface ReadPrompt extends PromptDigest {
  /** The longest earlier prompt that the body seems to continue: digests were taken from it (see `digestPrompt`). */
  readonly follows: PromptDigest | undefined
  /** The conversation's bytes after it; the whole body if there is none. */
  readonly unread: Buffer
  /** Bytes from the beginning of the prompt up to the end of so many items. */
  endOf(items: number): number
  /** How many model answers it contains after so many items. */
  answersAfter(items: number): number
}

/** Where a prompt stops being the same as an earlier one. `end`: nowhere, it only continues. */
export type Change =
  | { readonly at: 'end' | 'tools' | 'system' | 'settings'; readonly bytes: number }
  | { readonly at: 'item'; readonly item: number; readonly bytes: number }

type DigestedRequest = Pick<ModelRequest, 'bytes' | 'members'>

/**
 * Digests a prompt. If it seems to continue one of the `earlier` ones, only its new items are read, and the other digests are
 * taken from there. Bytes that changed in place, without a change in length, may be missed then: without `earlier` ones,
 * everything is read.
 */
export function digestPrompt(
  request: DigestedRequest,
  conversation: Conversation,
  earlier: readonly PromptDigest[],
): ReadPrompt {
  const { turns } = conversation
  let first = 0
  while (first < turns.length && isSystem(turns[first]!)) first += 1
  const items = turns.slice(first)
  const bytes = readBytes(request, items.length, earlier)
  const { continued } = bytes
  const read = continued ?? digestHead(request, conversation, turns.slice(0, first))
  const [toolsEnd, systemEnd] = read.ends
  const all = Math.max(systemEnd, bytes.length)
  let itemEnds: readonly number[] | undefined
  return {
    tools: read.tools,
    system: read.system,
    settings: read.settings,
    items: addItems(continued?.items ?? [], items),
    count: items.length,
    raw: bytes.raw,
    rawLength: bytes.rawLength,
    ends: [toolsEnd, systemEnd, all],
    follows: continued,
    unread: bytes.unread,
    endOf(count) {
      if (count === 0) return systemEnd
      itemEnds ??= endsOf(items, systemEnd, all)
      return itemEnds[count - 1] ?? all
    },
    answersAfter(count) {
      let answers = 0
      for (let at = count; at < items.length; at += 1) if (items[at]!.role === 'assistant') answers += 1
      return answers
    },
  }
}

/** Where `now` differs from the beginning that it had `before`, in the order in which providers cache a prompt. */
export function changeBetween(before: PromptDigest, now: ReadPrompt): Change {
  const [toolsEnd, systemEnd, all] = now.ends
  if (before.tools !== now.tools) return { at: 'tools', bytes: 0 }
  if (before.system !== now.system) return { at: 'system', bytes: toolsEnd }
  if (before.settings !== now.settings) return { at: 'settings', bytes: systemEnd }
  const shared = Math.min(before.items.length, now.items.length)
  for (let index = 0; index < shared; index++) {
    if (before.items[index] === now.items[index]) continue
    return { at: 'item', item: index + 1, bytes: now.endOf(index) }
  }
  // An earlier prompt that is longer was shortened: all of what is left may be cached.
  return { at: 'end', bytes: Math.min(before.ends[2], all) }
}

/** Whether two prompts belong to the same conversation: many conversations of a client share their tools. */
export function isSameConversation(one: PromptDigest, other: PromptDigest): boolean {
  return one.system === other.system || (one.items.length > 0 && one.items[0] === other.items[0])
}

interface BodyBytes extends Pick<PromptDigest, 'raw' | 'rawLength'> {
  /** All bytes that count. */
  readonly length: number
  readonly continued: ReadPrompt['follows']
  readonly unread: Buffer
}

/** Finds the longest earlier prompt with whose bytes the body seems to begin. */
function readBytes({ bytes, members }: DigestedRequest, count: number, earlier: readonly PromptDigest[]): BodyBytes {
  let [start, end] = [0, 0]
  let head = 0
  let headLength = 0
  for (let at = 0; at < members.length; at += 1) {
    const { key, valueStart, valueEnd } = members[at]!
    const kind = memberKinds.get(key)
    if (kind === 'conversation') [start, end] = [valueStart, valueEnd]
    if (kind !== 'head') continue
    head = sampledChecksum(bytes, valueStart, valueEnd, head)
    headLength += valueEnd - valueStart
  }
  const rawLength = lengthOfItems(bytes, start, end)
  let continued: PromptDigest | undefined
  for (const before of earlier) {
    const isShorter = before.rawLength <= rawLength && before.count <= count
    if (!isShorter || (continued !== undefined && before.rawLength <= continued.rawLength)) continue
    if (sampledChecksum(bytes, start, start + before.rawLength, head) === before.raw) continued = before
  }
  return {
    raw: sampledChecksum(bytes, start, start + rawLength, head),
    rawLength,
    length: headLength + rawLength,
    continued,
    unread: continued === undefined ? bytes : bytes.subarray(start + continued.rawLength, end),
  }
}

/** What comes before the items. */
function digestHead(
  request: DigestedRequest,
  conversation: Conversation,
  system: readonly Turn[],
): Pick<PromptDigest, 'tools' | 'system' | 'settings' | 'ends'> {
  const tools = memberOf(request, 'tools')
  const { instructions = '' } = conversation.hints
  const toolsEnd = tools.length
  return {
    tools: tools.length === 0 ? 0 : checksum(tools),
    system: checksum(instructions, system.reduce(addTurn, 0)),
    settings: checksum(settingsOf(conversation)),
    ends: [toolsEnd, system.reduce((end, turn) => end + lengthOf(turn), toolsEnd + instructions.length), 0],
  }
}

/** The digests of the first items, and those of the items after them. */
function addItems(known: readonly number[], items: readonly Turn[]): readonly number[] {
  if (known.length >= Math.min(maxItems, items.length)) return known.slice(0, items.length)
  const all = [...known]
  for (let at = known.length; at < Math.min(maxItems, items.length); at += 1) all.push(addTurn(0, items[at]!))
  return all
}

/** Where each item ends, in proportion to the length of its text. */
function endsOf(items: readonly Turn[], from: number, to: number): readonly number[] {
  let end = 0
  const ends = items.map((item) => (end += lengthOf(item)))
  return ends.map((one) => Math.round(from + ((to - from) * one) / Math.max(1, end)))
}

/** The length of a list in these bytes up to the end of its last item; of another value, all of it. */
function lengthOfItems(bytes: Buffer, start: number, end: number): number {
  let last = end - 1
  if (end === start || bytes[last] !== closingBracket) return end - start
  do last -= 1
  while (last >= start && bytes[last]! <= space)
  return last + 1 - start
}

function isSystem({ role }: Turn): boolean {
  return role === 'system' || role === 'developer'
}

function memberOf({ bytes, members }: DigestedRequest, name: string): Buffer {
  const member = members.find(({ key }) => key === name)
  return member === undefined ? nothing : bytes.subarray(member.valueStart, member.valueEnd)
}

function settingsOf({ toolChoice, parallelToolCalls, reasoning, outputFormat, hints }: Conversation): string {
  return JSON.stringify([toolChoice, parallelToolCalls, reasoning?.effort, outputFormat, hints.verbosity])
}

/**
 * Continues a checksum with everything in a turn that a model reads. Short texts are joined, because copying them is faster
 * than another call.
 */
function addTurn(sum: number, turn: Turn): number {
  let all = sum
  let text = turn.role === 'tool' ? `tool ${turn.callId}:` : `${turn.role}:`
  // With the length, so that different fields never have the same text together.
  const add = (name: string, field: string): void => {
    text += `${name} ${field.length} `
    if (field.length < shortText) text += field
    else {
      all = checksum(field, checksum(text, all))
      text = ''
    }
  }
  for (const part of turn.parts) addPart(part, add)
  return checksum(text + '\n', all)
}

function addPart(part: InputPart | AssistantPart, add: (name: string, field: string) => void): void {
  switch (part.type) {
    case 'text':
    case 'refusal':
      return add(part.type, part.text)
    case 'reasoning':
      add('reasoning', part.text)
      return add('sealed', part.sealed ?? '')
    case 'call':
      return add(`call ${part.id} ${part.namespace ?? ''} ${part.name}`, part.arguments)
    default:
      return add(part.type, longText(part))
  }
}

/** About as long as what a model reads. */
function lengthOf({ parts }: Turn): number {
  let length = 0
  for (const part of parts) {
    if (part.type === 'call') length += part.name.length + part.arguments.length
    else if (part.type === 'reasoning') length += part.text.length + (part.sealed?.length ?? 0)
    else length += 'text' in part ? part.text.length : longText(part).length
  }
  return length
}

function longText(part: Extract<InputPart, { readonly type: 'image' | 'file' | 'audio' }>): string {
  if (part.type === 'image') return part.url
  return part.type === 'audio' ? part.data : (part.data ?? part.url ?? part.id ?? '')
}
