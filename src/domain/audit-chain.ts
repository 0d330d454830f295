import { createHash } from 'node:crypto'
import { isObject, parseObject } from './json.ts'

/** What the first entry is chained to. */
export const chainStart: ChainPosition = { sequence: 0, hash: '' }

/** A place in the chain: the last entry so far and its hash. */
export interface ChainPosition {
  readonly sequence: number
  readonly hash: string
}

/** An entry as it is written, with its hash. */
export interface ChainLink {
  /** The text of `writeEntry`. */
  readonly entry: string
  readonly hash: string
}

/**
 * Why a chain does not hold. `malformed`: no entry in the one way of writing it. `gap`: entries before it are missing.
 * `repeated`: it stands behind one that is not before it. `changed`: its hash does not follow from it and the one before.
 * `misfiled`: the row keeps it under other values than its own. `rewritten`: a checkpoint proves another hash there, so
 * something at or before it was changed and the hashes were made again. `cut`: a checkpoint, or the head that the
 * database keeps, proves entries behind the last one. `head`: the database's head is not the last entry.
 * `checkpoint`: a checkpoint is not authentic.
 */
export interface ChainBreak {
  /** Where: the number of the first entry that does not hold, or that is missing. */
  readonly sequence: number
  readonly why: 'malformed' | 'gap' | 'repeated' | 'changed' | 'misfiled' | 'rewritten' | 'cut' | 'head' | 'checkpoint'
}

/** What is wrong with an entry, as a sentence goes on behind "at entry N". */
export const breakReasons: Readonly<Record<ChainBreak['why'], string>> = {
  malformed: 'what stands there is no entry as this program writes them',
  gap: 'the entry is missing and a later one follows',
  repeated: 'the entry stands where a later one belongs',
  changed: 'the entry or its hash was changed',
  misfiled: 'the entry is filed under values that are not its own',
  rewritten: 'a checkpoint proves another entry there: at or before it something was changed and the hashes made again',
  cut: 'the entry is missing, and it was there',
  head: 'the last entry is not the one that the database knows as its last',
  checkpoint: 'the checkpoint of this entry is forged',
}

/** The hash of an entry behind another: SHA-256 over that one's hash and this one's text, in base64url. */
export function chainHash(previousHash: string, entry: string): string {
  return createHash('sha256').update(`${previousHash}\n${entry}`).digest('base64url')
}

/** One line of an exported log, without its end. */
export function writeLink({ entry, hash }: ChainLink): string {
  return `{"entry":${entry},"hash":${JSON.stringify(hash)}}`
}

/** Reads a line of an exported log; undefined where it is not exactly as `writeLink` writes it. */
export function readLink(line: string): ChainLink | undefined {
  const { entry, hash } = parseObject(line) ?? {}
  if (!isObject(entry) || typeof hash !== 'string') return undefined
  const link = { entry: JSON.stringify(entry), hash }
  return writeLink(link) === line ? link : undefined
}

/** Follows a chain from one place on, entry by entry, and says where it breaks first. */
export class ChainFollower {
  #at: ChainPosition
  readonly #proven: ReadonlyMap<number, string>

  /** `proven` are places that checkpoints prove, by their sequence. */
  constructor(from: ChainPosition, proven: readonly ChainPosition[]) {
    this.#at = from
    this.#proven = new Map(proven.map(({ sequence, hash }) => [sequence, hash]))
  }

  /** The last entry that holds. */
  get position(): ChainPosition {
    return this.#at
  }

  /** Goes one entry on; gives the break instead where it does not follow. `undefined` stands for a line that is none. */
  follow(link: ChainLink | undefined): ChainBreak | undefined {
    const next = this.#at.sequence + 1
    const sequence = link === undefined ? undefined : sequenceOf(link.entry)
    if (link === undefined || sequence === undefined) return { sequence: next, why: 'malformed' }
    if (sequence > next) return { sequence: next, why: 'gap' }
    if (sequence < next) return { sequence, why: 'repeated' }
    if (link.hash !== chainHash(this.#at.hash, link.entry)) return { sequence, why: 'changed' }
    const proven = this.#proven.get(sequence)
    if (proven !== undefined && proven !== link.hash) return { sequence, why: 'rewritten' }
    this.#at = { sequence, hash: link.hash }
    return undefined
  }

  /** Says at the end whether something behind the last entry is proven to have been there. */
  end(): ChainBreak | undefined {
    const last = Math.max(0, ...this.#proven.keys())
    return last > this.#at.sequence ? { sequence: this.#at.sequence + 1, why: 'cut' } : undefined
  }
}

/** The number of an entry that is written in the one way; undefined where it is not. Its event may be of a newer version. */
function sequenceOf(entry: string): number | undefined {
  const value = parseObject(entry)
  const sequence = value?.['sequence']
  if (typeof sequence !== 'number' || !Number.isSafeInteger(sequence)) return undefined
  return JSON.stringify(value) === entry ? sequence : undefined
}
