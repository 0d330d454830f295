import type { AssistantPart, Conversation, InputPart, Turn } from '../../domain/conversation.ts'
import { checksum, sampledChecksum, textChecksum } from '../../runtime/checksum.ts'
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
const space = 0x20
const nothing = Buffer.alloc(0)
const noItems: readonly number[] = []

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
export class ReadPrompt implements PromptDigest {
  readonly tools: number
  readonly system: number
  readonly settings: number
  readonly items: readonly number[]
  readonly count: number
  readonly raw: number
  readonly rawLength: number
  readonly ends: PromptDigest['ends']
  /** The longest earlier prompt that the body seems to continue: digests were taken from it (see `digestPrompt`). */
  readonly follows: PromptDigest | undefined
  /** The offset in the body where the part after `follows` begins; 0 without `follows`. */
  readonly unreadFrom: number
  /** The items are the turns from `#first` on. */
  readonly #turns: readonly Turn[]
  readonly #first: number
  #itemEnds: readonly number[] | undefined

  /** `first`: how many turns come before the items. */
  constructor(head: HeadDigest, bytes: BodyBytes, turns: readonly Turn[], first: number) {
    const toolsEnd = head.ends[0]
    const systemEnd = head.ends[1]
    this.tools = head.tools
    this.system = head.system
    this.settings = head.settings
    this.items = addItems(bytes.follows?.items ?? noItems, turns, first)
    this.count = turns.length - first
    this.raw = bytes.raw
    this.rawLength = bytes.rawLength
    this.ends = [toolsEnd, systemEnd, Math.max(systemEnd, bytes.length)]
    this.follows = bytes.follows
    this.unreadFrom = bytes.unreadFrom
    this.#turns = turns
    this.#first = first
  }

  /** Bytes from the beginning of the prompt up to the end of so many items. */
  endOf(items: number): number {
    const [, systemEnd, all] = this.ends
    if (items === 0) return systemEnd
    this.#itemEnds ??= endsOf(this.#turns.slice(this.#first), systemEnd, all)
    return this.#itemEnds[items - 1] ?? all
  }

  /** How many model answers it contains after so many items. */
  answersAfter(items: number): number {
    let answers = 0
    for (let at = this.#first + items; at < this.#turns.length; at += 1)
      if (this.#turns[at]!.role === 'assistant') answers += 1
    return answers
  }
}

/** Where a prompt stops being the same as an earlier one. `end`: nowhere, it only continues. */
export type Change =
  | { readonly at: 'end' | 'tools' | 'system' | 'settings'; readonly bytes: number }
  | { readonly at: 'item'; readonly item: number; readonly bytes: number }

/** A prompt without what only its request needs. */
export function digestOf({ tools, system, settings, items, count, raw, rawLength, ends }: ReadPrompt): PromptDigest {
  return { tools, system, settings, items, count, raw, rawLength, ends }
}

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
  const bytes = readBytes(request, turns.length - first, earlier)
  const head = bytes.follows ?? digestHead(request, conversation, turns.slice(0, first))
  return new ReadPrompt(head, bytes, turns, first)
}

/** Where `now` differs from the beginning that it had `before`, in the order in which providers cache a prompt. */
export function changeBetween(before: PromptDigest, now: ReadPrompt): Change {
  const end = { at: 'end', bytes: Math.min(before.ends[2], now.ends[2]) } as const
  // Then all digests were copied from there.
  if (now.follows === before) return end
  const [toolsEnd, systemEnd] = now.ends
  if (before.tools !== now.tools) return { at: 'tools', bytes: 0 }
  if (before.system !== now.system) return { at: 'system', bytes: toolsEnd }
  if (before.settings !== now.settings) return { at: 'settings', bytes: systemEnd }
  const shared = Math.min(before.items.length, now.items.length)
  for (let index = 0; index < shared; index++) {
    if (before.items[index] === now.items[index]) continue
    return { at: 'item', item: index + 1, bytes: now.endOf(index) }
  }
  // An earlier prompt that is longer was shortened: all of what is left may be cached.
  return end
}

/** What conversations of the same client have in common. Instructions often contain a date or a path. */
export function openingDigest({ tools, system }: PromptDigest): number {
  return tools === 0 ? system : tools
}

/** Whether two prompts belong to the same conversation: many conversations of a client share their tools. */
export function isSameConversation(one: PromptDigest, other: PromptDigest): boolean {
  return one.system === other.system || (one.items.length > 0 && one.items[0] === other.items[0])
}

type HeadDigest = Pick<PromptDigest, 'tools' | 'system' | 'settings' | 'ends'>

interface BodyBytes extends Pick<PromptDigest, 'raw' | 'rawLength'> {
  /** All bytes that count. */
  readonly length: number
  /** See `ReadPrompt`, as for `unreadFrom`. */
  readonly follows: PromptDigest | undefined
  readonly unreadFrom: number
}

/** Finds the longest earlier prompt with whose bytes the body seems to begin. */
function readBytes({ bytes, members }: DigestedRequest, count: number, earlier: readonly PromptDigest[]): BodyBytes {
  let start = 0
  let end = 0
  let head = 0
  let headLength = 0
  for (let at = 0; at < members.length; at += 1) {
    const { key, valueStart, valueEnd } = members[at]!
    const kind = memberKinds.get(key)
    if (kind === 'conversation') {
      start = valueStart
      end = valueEnd
    }
    if (kind !== 'head') continue
    head = sampledChecksum(bytes, valueStart, valueEnd, head)
    headLength += valueEnd - valueStart
  }
  const rawLength = lengthOfItems(bytes, start, end)
  let follows: PromptDigest | undefined
  for (const before of earlier) {
    const isShorter = before.rawLength <= rawLength && before.count <= count
    if (!isShorter || (follows !== undefined && before.rawLength <= follows.rawLength)) continue
    if (sampledChecksum(bytes, start, start + before.rawLength, head) === before.raw) follows = before
  }
  return {
    raw: sampledChecksum(bytes, start, start + rawLength, head),
    rawLength,
    length: headLength + rawLength,
    follows,
    unreadFrom: follows === undefined ? 0 : start + follows.rawLength,
  }
}

/** What comes before the items. */
function digestHead(request: DigestedRequest, conversation: Conversation, system: readonly Turn[]): HeadDigest {
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

/** The digests of the first items, and those of the items after them, which are the turns from `first` on. */
function addItems(known: readonly number[], turns: readonly Turn[], first: number): readonly number[] {
  const count = Math.min(maxItems, turns.length - first)
  if (known.length >= count) return known.slice(0, count)
  const added: number[] = []
  for (let at = known.length; at < count; at += 1) added.push(addTurn(0, turns[first + at]!))
  return known.concat(added)
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

/** Continues a checksum with everything in a turn that a model reads. */
function addTurn(before: number, turn: Turn): number {
  let sum = textChecksum(turn.role, before)
  if (turn.role === 'tool') sum = textChecksum(turn.callId, sum)
  for (const part of turn.parts) sum = addPart(textChecksum(part.type, sum), part)
  return sum
}

function addPart(before: number, part: InputPart | AssistantPart): number {
  switch (part.type) {
    case 'text':
    case 'refusal':
      return textChecksum(part.text, before)
    case 'reasoning':
      return textChecksum(part.sealed ?? '', textChecksum(part.text, before))
    case 'call': {
      const named = textChecksum(part.name, textChecksum(part.namespace ?? '', textChecksum(part.id, before)))
      return textChecksum(part.arguments, named)
    }
    default:
      return textChecksum(longText(part), before)
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
