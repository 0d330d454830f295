import type { CacheLifetime } from '../../domain/conversation.ts'
import { type Json, type JsonObject, isObject } from '../../domain/json.ts'
import { isArray } from '../fields.ts'
import type { CacheBlock, CacheOutline } from './plan-marks.ts'

/** Where a block is in its member of the body. */
export interface BlockPlace {
  /** The position in the member's list; -1 if the member is a text. */
  readonly index: number
  /** The position in the content of a message; -1 if the content is a text, or the entry is the block itself. */
  readonly part: number
}

export interface PlacedOutline extends CacheOutline {
  readonly placed: PlacedBlocks
}

/** No content has as many parts: a body has at most 300,000 tokens of JSON. */
const mostParts = 2 ** 20

/** Blocks with their places. A prompt has hundreds for a few marks, so equal blocks are one object, and a place is a number. */
export class PlacedBlocks {
  readonly blocks: CacheBlock[] = []
  readonly #places: number[] = []

  /** `lifetime` is that of the caller's own mark. */
  add(index: number, part: number, isMarkable: boolean, lifetime: CacheLifetime | undefined): void {
    this.blocks.push(cacheBlock(isMarkable, lifetime))
    this.#places.push((index + 1) * mostParts + part + 1)
  }

  /** A mark at the top of the body is one on the last block that takes it. Returns how many marks that are. */
  addAutomatic(control: Json | undefined): number {
    const lifetime = lifetimeOf(control)
    if (lifetime === undefined) return 0
    const last = this.blocks.findLastIndex(({ isMarkable }) => isMarkable)
    if (last >= 0) this.blocks[last] = cacheBlock(false, lifetime)
    return 1
  }

  placeOf(at: number): BlockPlace {
    const place = this.#places[at]!
    return { index: Math.floor(place / mostParts) - 1, part: (place % mostParts) - 1 }
  }
}

const space = 0x20
const del = 0x7f
const plainBlock: CacheBlock = { isMarkable: false }
const markableBlock: CacheBlock = { isMarkable: true }

/** A block of an outline. */
function cacheBlock(isMarkable: boolean, lifetime: CacheLifetime | undefined): CacheBlock {
  if (lifetime !== undefined) return { isMarkable, lifetime }
  return isMarkable ? markableBlock : plainBlock
}

/** Where the newest turn of the model begins, and where the prompt ends, found while its entries are added in order. */
export class TurnBounds {
  /** See `CacheOutline`. */
  answerStart: number | undefined
  end: number
  earlierTask: number | undefined
  #openAnswer: number | undefined
  /** Where the model's first answer to the user's newest words begins. */
  #firstAnswer: number | undefined

  /** `start`: where the messages begin. */
  constructor(start: number) {
    this.end = start
  }

  /** An entry was added whose blocks begin and end here. An answer that the model is to continue is not a turn. */
  add(isAnswer: boolean, from: number, to: number): void {
    if (isAnswer) {
      this.#openAnswer ??= from
      this.#firstAnswer ??= from
      return
    }
    this.answerStart = this.#openAnswer ?? this.answerStart
    this.#openAnswer = undefined
    this.end = to
  }

  /** The last entry is the user's: words, or results of tools. */
  addUser(isSaid: boolean): void {
    if (!isSaid) {
      this.earlierTask = undefined
      return
    }
    this.earlierTask = this.#firstAnswer ?? this.earlierTask
    this.#firstAnswer = undefined
  }
}

/** The lifetime of a `cache_control`; undefined if it is absent. */
export function lifetimeOf(control: Json | undefined): CacheLifetime | undefined {
  if (control === undefined || control === null) return undefined
  return isObject(control) && control['ttl'] === '1h' ? '1h' : '5m'
}

/** `cache_control` for a mark. */
export function cacheControl(lifetime: CacheLifetime): JsonObject {
  return lifetime === '1h' ? { type: 'ephemeral', ttl: '1h' } : { type: 'ephemeral' }
}

/** The same as JSON to append to an object's members, with its comma. */
export const cacheControlText: Readonly<Record<CacheLifetime, string>> = {
  '5m': `,"cache_control":${JSON.stringify(cacheControl('5m'))}`,
  '1h': `,"cache_control":${JSON.stringify(cacheControl('1h'))}`,
}

/** Whether a `tool_choice` of any format makes the model call a tool. */
export function isForcedChoice(choice: Json | undefined): boolean {
  if (!isObject(choice)) return choice === 'required'
  const { type } = choice
  return type !== 'auto' && type !== 'none' && type !== 'allowed_tools'
}

/** Whether text may be marked: providers answer 400 for a mark on nothing but whitespace. */
export function isMarkableText(text: Json | undefined): boolean {
  if (typeof text !== 'string') return false
  const first = text.charCodeAt(0)
  // Nearly every text begins with such a character, and a pattern takes longer.
  return (first > space && first < del) || /\S/.test(text)
}

const none: readonly CacheLifetime[] = []

/** The marks inside a block: those of a tool result's or a document's own content. */
export function innerMarks({ content, source }: JsonObject): readonly CacheLifetime[] {
  const inner = isArray(content) ? content : isObject(source) && isArray(source['content']) ? source['content'] : none
  let found: CacheLifetime[] | undefined
  for (const part of inner) {
    const lifetime = isObject(part) ? lifetimeOf(part['cache_control']) : undefined
    if (lifetime !== undefined) (found ??= []).push(lifetime)
  }
  return found ?? none
}
