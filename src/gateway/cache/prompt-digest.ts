import type { AssistantPart, Conversation, InputPart, Turn } from '../../domain/conversation.ts'
import type { KeyedDigest } from '../../runtime/keyed-digest.ts'
import type { ModelRequest } from '../ports.ts'

/** Items that have a digest of their own; later ones are covered by the digest of everything. */
const maxItems = 1_024

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
  /** Of all items together. */
  readonly whole: string
  /** Characters up to the end of the tools, of the system prompt, and of all items. */
  readonly ends: readonly [tools: number, system: number, all: number]
}

/** A prompt with what is known of its text only while its request runs. */
export interface ReadPrompt extends PromptDigest {
  /** Characters from the beginning of the prompt up to the end of each item. */
  readonly itemEnds: readonly number[]
  /** How many model answers it contains after so many items. */
  answersAfter(items: number): number
}

/** Where a prompt stops being the same as an earlier one. `end`: nowhere, it only continues. */
export type Change =
  | { readonly at: 'end' | 'tools' | 'system' | 'settings'; readonly characters: number }
  | { readonly at: 'item'; readonly item: number; readonly characters: number }

/** Digests a prompt. If it continues `earlier`, only its new items are digested one by one. */
export function digestPrompt(
  digest: KeyedDigest,
  request: Pick<ModelRequest, 'bytes' | 'members'>,
  conversation: Conversation,
  earlier: readonly PromptDigest[],
): ReadPrompt {
  const { turns, hints } = conversation
  let first = 0
  while (first < turns.length && isSystem(turns[first]!)) first += 1
  const system = turns.slice(0, first).map(textOf).join('') + (hints.instructions ?? '')
  const tools = memberText(request, 'tools')
  const texts = turns.slice(first).map(textOf)
  const toolsEnd = tools.length
  const systemEnd = toolsEnd + system.length
  const itemEnds: number[] = []
  let end = systemEnd
  for (const text of texts) itemEnds.push((end += text.length))
  const { items, whole } = digestItems(digest, texts, earlier)
  return {
    tools: tools.length === 0 ? 0 : Number.parseInt(hexOf(digest.of(tools)), 16),
    system: digest.shortOf(system),
    settings: digest.shortOf(settingsOf(conversation)),
    items,
    count: texts.length,
    whole,
    ends: [toolsEnd, systemEnd, end],
    itemEnds,
    answersAfter: (count) => turns.slice(first + count).filter(({ role }) => role === 'assistant').length,
  }
}

/** Where `now` differs from the beginning that it had `before`, in the order in which providers cache a prompt. */
export function changeBetween(before: PromptDigest, now: ReadPrompt): Change {
  const [toolsEnd, systemEnd, all] = now.ends
  if (before.tools !== now.tools) return { at: 'tools', characters: 0 }
  if (before.system !== now.system) return { at: 'system', characters: toolsEnd }
  if (before.settings !== now.settings) return { at: 'settings', characters: systemEnd }
  const shared = Math.min(before.items.length, now.items.length)
  for (let index = 0; index < shared; index++) {
    if (before.items[index] === now.items[index]) continue
    return { at: 'item', item: index + 1, characters: index === 0 ? systemEnd : now.itemEnds[index - 1]! }
  }
  // An earlier prompt that is longer was shortened: all of what is left may be cached.
  return { at: 'end', characters: Math.min(before.ends[2], all) }
}

/** Whether two prompts belong to the same conversation: many conversations of a client share their tools. */
export function isSameConversation(one: PromptDigest, other: PromptDigest): boolean {
  return one.system === other.system || (one.items.length > 0 && one.items[0] === other.items[0])
}

function digestItems(
  digest: KeyedDigest,
  texts: readonly string[],
  earlier: readonly PromptDigest[],
): Pick<PromptDigest, 'items' | 'whole'> {
  const bytes = Buffer.from(texts.join(''))
  const whole = digest.of(bytes)
  const continued = earlier.find(({ count, whole: before }) => {
    if (count === 0 || count > texts.length || count > maxItems) return false
    const length = count === texts.length ? bytes.length : byteLengthOf(texts, count, bytes)
    return digest.of(bytes.subarray(0, length)) === before
  })
  const items = continued === undefined ? [] : [...continued.items]
  for (const text of texts.slice(items.length, maxItems)) items.push(digest.shortOf(text))
  return { items, whole }
}

/** The bytes of the first texts, counted from the end, which is shorter. */
function byteLengthOf(texts: readonly string[], count: number, bytes: Buffer): number {
  let length = bytes.length
  for (const text of texts.slice(count)) length -= Buffer.byteLength(text)
  return length
}

function isSystem({ role }: Turn): boolean {
  return role === 'system' || role === 'developer'
}

function hexOf(digest: string): string {
  return Buffer.from(digest, 'base64url').toString('hex', 0, 4)
}

function memberText({ bytes, members }: Pick<ModelRequest, 'bytes' | 'members'>, name: string): Buffer {
  const member = members.find(({ key }) => key === name)
  return member === undefined ? Buffer.alloc(0) : bytes.subarray(member.valueStart, member.valueEnd)
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
