import type { AssistantPart, Conversation, InputPart, Turn } from '../../domain/conversation.ts'
import type { KeyedDigest } from '../../runtime/keyed-digest.ts'
import type { ModelRequest } from '../ports.ts'

/** Items that have a digest of their own. */
const maxItems = 1_024
/** Members of a body that a provider reads before the conversation, or that decide whether it can read a cached one. */
const headMembers: ReadonlySet<string> = new Set([
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
])
const conversationMembers: ReadonlySet<string> = new Set(['messages', 'input'])
const closingBracket = 0x5d
const space = 0x20
const nothing = Buffer.alloc(0)

/** What is remembered of a prompt, in the order in which providers cache it. Digests only, no text (contract 45.11). */
export interface PromptDigest {
  readonly tools: number
  readonly system: number
  /** Settings that decide whether a cached conversation can be read: tool choice, reasoning, the format of answers. */
  readonly settings: number
  /** One for each item after the system prompt, at most `maxItems`. */
  readonly items: readonly number[]
  /** The number of items. */
  readonly count: number
  /** Of the bytes of the body up to the end of the last item, and how many of them are the conversation's. */
  readonly raw: string
  readonly rawLength: number
  /** Of all items together, without marks for caching; empty if the bytes sufficed. */
  readonly whole: string
  /** Bytes up to the end of the tools, of the system prompt, and of all items. */
  readonly ends: readonly [tools: number, system: number, all: number]
}

/** A prompt with what is known of its text only while its request runs. */
export interface ReadPrompt extends PromptDigest {
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

/** Digests a prompt. If it continues one of the `earlier` ones, only its new items are digested one by one. */
export function digestPrompt(
  digest: KeyedDigest,
  request: DigestedRequest,
  conversation: Conversation,
  earlier: readonly PromptDigest[],
): ReadPrompt {
  const { turns } = conversation
  let first = 0
  while (first < turns.length && isSystem(turns[first]!)) first += 1
  const items = turns.slice(first)
  const { head, value } = partsOf(request)
  const rawLength = lengthOfItems(value)
  const raw = digest.of(...head, value.subarray(0, rawLength))
  const continued = earlier.find(
    (before) =>
      before.rawLength <= rawLength &&
      before.count <= items.length &&
      digest.of(...head, value.subarray(0, before.rawLength)) === before.raw,
  )
  const read =
    continued === undefined
      ? digestParts(digest, request, { conversation, system: turns.slice(0, first), items, earlier })
      : { ...continued, whole: '', items: addItems(digest, continued.items, items) }
  const {
    ends: [toolsEnd, systemEnd],
  } = read
  const all = Math.max(
    systemEnd,
    head.reduce((sum, { length }) => sum + length, rawLength),
  )
  let itemEnds: readonly number[] | undefined
  return {
    tools: read.tools,
    system: read.system,
    settings: read.settings,
    items: read.items,
    count: items.length,
    raw,
    rawLength,
    whole: read.whole,
    ends: [toolsEnd, systemEnd, all],
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

interface PromptParts {
  readonly conversation: Conversation
  readonly system: readonly Turn[]
  readonly items: readonly Turn[]
  readonly earlier: readonly PromptDigest[]
}

/**
 * Each part by itself. Clients that move their marks for caching with every turn send other bytes for the same items, so
 * all items together have one more digest without marks.
 */
function digestParts(
  digest: KeyedDigest,
  request: DigestedRequest,
  { conversation, system, items, earlier }: PromptParts,
): Omit<PromptDigest, 'count' | 'raw' | 'rawLength'> {
  const tools = memberOf(request, 'tools')
  const systemText = system.map(textOf).join('') + (conversation.hints.instructions ?? '')
  const texts = items.map(textOf)
  const bytes = Buffer.from(texts.join(''))
  const continued = earlier.find(({ count, whole }) => {
    if (whole === '' || count === 0 || count > texts.length) return false
    const length = count === texts.length ? bytes.length : byteLengthOf(texts, count, bytes)
    return digest.of(bytes.subarray(0, length)) === whole
  })
  const toolsEnd = tools.length
  return {
    tools: tools.length === 0 ? 0 : digest.shortOf(digest.of(tools)),
    system: digest.shortOf(systemText),
    settings: digest.shortOf(settingsOf(conversation)),
    items: addItems(digest, continued?.items ?? [], items),
    whole: digest.of(bytes),
    ends: [toolsEnd, toolsEnd + systemText.length, 0],
  }
}

/** The digests of the first items, and those of the items after them. */
function addItems(digest: KeyedDigest, known: readonly number[], items: readonly Turn[]): readonly number[] {
  if (known.length >= Math.min(maxItems, items.length)) return known.slice(0, items.length)
  return [...known, ...items.slice(known.length, maxItems).map((item) => digest.shortOf(textOf(item)))]
}

/** The bytes of the first texts, counted from the end, which is shorter. */
function byteLengthOf(texts: readonly string[], count: number, bytes: Buffer): number {
  let length = bytes.length
  for (const text of texts.slice(count)) length -= Buffer.byteLength(text)
  return length
}

/** Where each item ends, in proportion to the length of its text. */
function endsOf(items: readonly Turn[], from: number, to: number): readonly number[] {
  let end = 0
  const ends = items.map((item) => (end += textOf(item).length))
  return ends.map((one) => Math.round(from + ((to - from) * one) / Math.max(1, end)))
}

/**
 * What comes before the conversation, and the conversation, as the client wrote them. Members that follow each other are
 * one part, because each part of a digest has its own price.
 */
function partsOf({ bytes, members }: DigestedRequest): { readonly head: readonly Buffer[]; readonly value: Buffer } {
  const head: Buffer[] = []
  let value: Buffer = nothing
  for (let at = 0; at < members.length; at += 1) {
    const { key, valueStart, valueEnd } = members[at]!
    if (conversationMembers.has(key)) value = bytes.subarray(valueStart, valueEnd)
    if (!headMembers.has(key)) continue
    let end = valueEnd
    while (at + 1 < members.length && headMembers.has(members[at + 1]!.key)) end = members[(at += 1)]!.valueEnd
    head.push(bytes.subarray(valueStart, end))
  }
  return { head, value }
}

/** The length of a list up to the end of its last item; of another value, all of it. */
function lengthOfItems(value: Buffer): number {
  let end = value.length
  if (value[end - 1] !== closingBracket) return end
  do end -= 1
  while (end > 0 && value[end - 1]! <= space)
  return end
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

/** Everything in a turn that a model reads, with lengths, so that different turns never have the same text. */
function textOf(turn: Turn): string {
  let text = `${turn.role}${turn.role === 'tool' ? ` ${turn.callId}` : ''}:`
  for (const part of turn.parts) text += partText(part)
  return `${text}\n`
}

function partText(part: InputPart | AssistantPart): string {
  switch (part.type) {
    case 'text':
    case 'refusal':
      return field(part.type, part.text)
    case 'image':
      return field('image', part.url)
    case 'file':
      return field('file', part.data ?? part.url ?? part.id ?? '')
    case 'audio':
      return field('audio', part.data)
    case 'reasoning':
      return field('reasoning', part.text) + field('sealed', part.sealed ?? '')
    case 'call':
      return field(`call ${part.id} ${part.namespace ?? ''} ${part.name}`, part.arguments)
  }
}

function field(name: string, text: string): string {
  return `${name} ${text.length} ${text};`
}
