import type { AnswerEvent, AssistantPart, Conversation, Json, JsonObject, Turn } from '../domain/conversation.ts'
import { isObject } from '../domain/json.ts'
import { isArray } from './fields.ts'
import { elementsOf, endOfString } from './json-elements.ts'

/**
 * Providers give reasoning in a form that only they can read, and refuse what another one sealed (contract 11.8). Whatever
 * leaves towards a caller is marked with who issued it, and goes back only there; the mark of another, a mark that was
 * made up, or none at all: it is left out. A mark is a digest (`Backend.issuer`): it says nothing of the credential.
 */
const mark = 'svcr1.'

/** Where a format has what providers seal for themselves. */
export interface Sealing {
  /** The member of a request's outermost object under which it comes back, a list. */
  readonly member: string
  /** Finds in JSON text everything up to the opening quote of each sealed value. It may find too much, never too little, and is global. */
  readonly opening: RegExp
  /** What a text has where something sealed may be in it. */
  readonly needles: readonly string[]
  /** The member of an object that is sealed; undefined where none is. */
  sealedMember(object: JsonObject): string | undefined
  /** Whether an object is left out whose list of content has nothing left: providers of some formats refuse it. */
  readonly dropsEmptied: boolean
}

/** A sealed value as a caller gets it. */
export function sealFor(issuer: string, sealed: string): string {
  return `${mark}${issuer}.${sealed}`
}

/** The sealed value as its issuer gave it; undefined where it is another's. */
export function unsealFor(issuer: string, sealed: string): string | undefined {
  const prefix = sealFor(issuer, '')
  // One that came in pieces has the mark before each.
  return sealed.startsWith(prefix) ? sealed.replaceAll(prefix, '') : undefined
}

/** Marks what an event holds sealed. */
export function sealEvent(event: AnswerEvent, issuer: string): AnswerEvent {
  if (event.type !== 'reasoning_end' || event.sealed === undefined) return event
  return { type: 'reasoning_end', sealed: sealFor(issuer, event.sealed) }
}

/** Marks every sealed value in the text of an event or of a whole answer, `data` parsed; all other characters stay. */
export function sealText(sealing: Sealing, text: string, data: Json, issuer: string): string {
  if (!mayBeSealed(sealing, text)) return text
  const sealed = new Set<string>()
  gatherSealed(data, sealing, sealed)
  if (sealed.size === 0) return text
  return text.replace(sealing.opening, (opening: string, at: number) => {
    const quote = at + opening.length - 1
    const value = JSON.parse(text.slice(quote, endOfString(text, quote) + 1)) as string
    return sealed.has(value) ? opening + sealFor(issuer, '') : opening
  })
}

/** Whether there may be something sealed in a text: a search, without looking at its structure. */
export function mayBeSealed({ needles }: Sealing, text: string | Buffer): boolean {
  return needles.some((needle) => text.includes(needle))
}

/**
 * A request's member as this issuer may read it: its own values without their mark, and without the entries of lists that
 * hold another's. Entries that hold nothing foreign keep their writing. `json` must be valid.
 */
export function unsealMember(sealing: Sealing, json: string, issuer: string): string {
  const elements = elementsOf(json)
  if (elements === undefined) return json
  const { opening } = sealing
  const own = new RegExp(`(${opening.source})${sealFor(issuer, '').replaceAll('.', String.raw`\.`)}`, 'g')
  const kept: string[] = []
  for (const element of elements) {
    if (!mayBeSealed(sealing, element)) {
      kept.push(element)
      continue
    }
    const count = matches(opening, element)
    if (count > 0 && count === matches(own, element)) {
      kept.push(element.replace(own, '$1'))
      continue
    }
    const value = JSON.parse(element) as Json
    const readable = unsealValue(value, sealing, issuer)
    if (readable === value) kept.push(element)
    else if (readable !== undefined) kept.push(JSON.stringify(readable))
  }
  return `[${kept.join(',')}]`
}

/** The conversation as this issuer may read it, for translating it: nothing sealed in it is another's, and nothing is marked. */
export function unsealConversation(conversation: Conversation, issuer: string): Conversation {
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
  const own = unsealFor(issuer, sealed)
  return own === undefined ? open : { ...open, sealed: own }
}

/** What can be read of a value, the value itself where all of it can; undefined where nothing can. */
function unsealValue(value: Json, sealing: Sealing, issuer: string): Json | undefined {
  if (isArray(value)) {
    const read = value.map((entry) => unsealValue(entry, sealing, issuer))
    return read.every((entry, index) => entry === value[index]) ? value : read.filter((entry) => entry !== undefined)
  }
  if (!isObject(value)) return value
  const sealedMember = sealing.sealedMember(value)
  const read: [string, Json][] = []
  let isSame = true
  for (const [name, member] of Object.entries(value as Readonly<Record<string, Json>>)) {
    const isSealed = name === sealedMember && typeof member === 'string'
    const readable = isSealed ? unsealFor(issuer, member) : unsealValue(member, sealing, issuer)
    // Without what was sealed the rest of it is refused.
    if (readable === undefined) return undefined
    if (readable !== member) isSame = false
    if (sealing.dropsEmptied && readable !== member && isArray(readable) && readable.length === 0) return undefined
    read.push([name, readable])
  }
  return isSame ? value : Object.fromEntries(read)
}

function gatherSealed(value: Json, sealing: Sealing, sealed: Set<string>): void {
  if (isArray(value)) {
    for (const entry of value) gatherSealed(entry, sealing, sealed)
    return
  }
  if (!isObject(value)) return
  const name = sealing.sealedMember(value)
  const own = name === undefined ? undefined : value[name]
  if (typeof own === 'string') sealed.add(own)
  for (const member of Object.values(value)) if (member !== undefined) gatherSealed(member, sealing, sealed)
}

function matches(pattern: RegExp, text: string): number {
  return text.match(pattern)?.length ?? 0
}
