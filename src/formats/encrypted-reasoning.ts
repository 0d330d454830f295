import type { AnswerEvent, AssistantPart, Conversation, Turn } from '../domain/conversation.ts'
import { type Json, type JsonObject, isObject } from '../domain/json.ts'
import { isArray } from './fields.ts'
import { elementsOf, endOfString } from './json-elements.ts'

/**
 * Providers encrypt reasoning so that only they can read it, and reject reasoning encrypted by another provider
 * (contract 11.8). Everything encrypted that reaches a client is marked with its issuer, and goes back only to that
 * issuer; a value with another mark, a forged one, or none is left out. A mark is a digest (`Backend.issuer`) and
 * reveals nothing about the credential.
 */
const mark = 'svcr1.'

/** Where a format carries encrypted values. */
export interface EncryptedReasoningRules {
  /** The list member of a request's top-level object that carries them back. */
  readonly member: string
  /**
   * A global pattern that matches JSON text up to the opening quote of each encrypted value. It may match too much,
   * never too little.
   */
  readonly opening: RegExp
  /** Substrings that occur in every text with encrypted values. */
  readonly needles: readonly string[]
  /** The encrypted member of an object; undefined if there is none. */
  encryptedMember(object: JsonObject): string | undefined
  /** Whether an object is dropped if its content list becomes empty: providers of some formats reject it. */
  readonly dropsEmptied: boolean
}

/** Marks an encrypted value with its issuer, for the client. */
export function markWithIssuer(issuer: string, sealed: string): string {
  return `${mark}${issuer}.${sealed}`
}

/** Removes the mark from an encrypted value; undefined if another issuer produced it. */
export function unmarkIssuer(issuer: string, sealed: string): string | undefined {
  const prefix = markWithIssuer(issuer, '')
  // A value that arrived in pieces has the mark before each.
  return sealed.startsWith(prefix) ? sealed.replaceAll(prefix, '') : undefined
}

/** Marks the encrypted values in an event. */
export function markEvent(event: AnswerEvent, issuer: string): AnswerEvent {
  if (event.type !== 'reasoning_end' || event.sealed === undefined) return event
  return { type: 'reasoning_end', sealed: markWithIssuer(issuer, event.sealed) }
}

/**
 * Marks every encrypted value in the text of an event or a whole answer, where `data` is the parsed text; all other
 * characters stay.
 */
export function markText(sealing: EncryptedReasoningRules, text: string, data: Json, issuer: string): string {
  if (!mayBeEncrypted(sealing, text)) return text
  const sealed = new Set<string>()
  collectEncrypted(data, sealing, sealed)
  if (sealed.size === 0) return text
  return text.replace(sealing.opening, (opening: string, at: number) => {
    const quote = at + opening.length - 1
    const value = JSON.parse(text.slice(quote, endOfString(text, quote) + 1)) as string
    return sealed.has(value) ? opening + markWithIssuer(issuer, '') : opening
  })
}

/** Whether a text may contain encrypted values: a substring search that ignores structure. */
export function mayBeEncrypted({ needles }: EncryptedReasoningRules, text: string | Buffer): boolean {
  return needles.some((needle) => text.includes(needle))
}

/** Values of a request that are looked at. Agents' requests rarely have more. */
const maxValues = 5_000

/**
 * Whether a member of a request contains encrypted values. Searching the request's `bytes` takes ten times as long for most
 * requests, but less for those with many values.
 */
export function holdsEncrypted(sealing: EncryptedReasoningRules, value: Json | undefined, bytes: Buffer): boolean {
  const left = { values: maxValues }
  return findEncrypted(sealing, value, left) || (left.values <= 0 && mayBeEncrypted(sealing, bytes))
}

/** Finds nothing once no values are left to look at. */
function findEncrypted(sealing: EncryptedReasoningRules, value: Json | undefined, left: { values: number }): boolean {
  if ((left.values -= 1) <= 0) return false
  if (isArray(value)) return value.some((entry) => findEncrypted(sealing, entry, left))
  if (!isObject(value)) return false
  if (sealing.encryptedMember(value) !== undefined) return true
  for (const name in value) if (findEncrypted(sealing, value[name], left)) return true
  return false
}

/**
 * A request's member for this issuer: its own values without their mark, and lists without entries that contain another
 * issuer's values. Other entries are left unchanged. `json` must be valid.
 */
export function unmarkMember(sealing: EncryptedReasoningRules, json: string, issuer: string): string {
  const elements = elementsOf(json)
  if (elements === undefined) return json
  const { opening } = sealing
  const own = new RegExp(`(${opening.source})${markWithIssuer(issuer, '').replaceAll('.', String.raw`\.`)}`, 'g')
  const output: string[] = []
  for (const element of elements) {
    if (!mayBeEncrypted(sealing, element)) {
      output.push(element)
      continue
    }
    const count = matches(opening, element)
    if (count > 0 && count === matches(own, element)) {
      output.push(element.replace(own, '$1'))
      continue
    }
    const value = JSON.parse(element) as Json
    const readable = unsealValue(value, sealing, issuer)
    if (readable === value) output.push(element)
    else if (readable !== undefined) output.push(JSON.stringify(readable))
  }
  return `[${output.join(',')}]`
}

/** The conversation for this issuer, for translating it: without other issuers' encrypted values and without marks. */
export function unmarkConversation(conversation: Conversation, issuer: string): Conversation {
  if (!conversation.turns.some(hasSealed)) return conversation
  const turns = conversation.turns.map((turn): Turn => {
    if (turn.role !== 'assistant' || !hasSealed(turn)) return turn
    return { ...turn, parts: turn.parts.map((part) => unsealPart(part, issuer)) }
  })
  return { ...conversation, turns }
}

function hasSealed(turn: Turn): boolean {
  return turn.role === 'assistant' && turn.parts.some((part) => part.type === 'reasoning' && part.sealed !== undefined)
}

function unsealPart(part: AssistantPart, issuer: string): AssistantPart {
  if (part.type !== 'reasoning' || part.sealed === undefined) return part
  const { sealed, ...open } = part
  const own = unmarkIssuer(issuer, sealed)
  return own === undefined ? open : { ...open, sealed: own }
}

/**
 * The part of a value that this issuer can read, or the value itself if that is all of it; undefined if it can read
 * nothing.
 */
function unsealValue(value: Json, sealing: EncryptedReasoningRules, issuer: string): Json | undefined {
  if (isArray(value)) {
    const read = value.map((entry) => unsealValue(entry, sealing, issuer))
    return read.every((entry, index) => entry === value[index]) ? value : read.filter((entry) => entry !== undefined)
  }
  if (!isObject(value)) return value
  const sealedMember = sealing.encryptedMember(value)
  const read: [string, Json][] = []
  let isSame = true
  for (const [name, member] of Object.entries(value as Readonly<Record<string, Json>>)) {
    const isSealed = name === sealedMember && typeof member === 'string'
    const readable = isSealed ? unmarkIssuer(issuer, member) : unsealValue(member, sealing, issuer)
    // Providers reject the rest of it without its encrypted value.
    if (readable === undefined) return undefined
    if (readable !== member) isSame = false
    if (sealing.dropsEmptied && readable !== member && isArray(readable) && readable.length === 0) return undefined
    read.push([name, readable])
  }
  return isSame ? value : Object.fromEntries(read)
}

function collectEncrypted(value: Json, sealing: EncryptedReasoningRules, sealed: Set<string>): void {
  if (isArray(value)) {
    for (const entry of value) collectEncrypted(entry, sealing, sealed)
    return
  }
  if (!isObject(value)) return
  const name = sealing.encryptedMember(value)
  const own = name === undefined ? undefined : value[name]
  if (typeof own === 'string') sealed.add(own)
  for (const member of Object.values(value)) if (member !== undefined) collectEncrypted(member, sealing, sealed)
}

function matches(pattern: RegExp, text: string): number {
  return text.match(pattern)?.length ?? 0
}
