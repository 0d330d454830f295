import { createHash } from 'node:crypto'
import { isObject, parseObject } from './json.ts'

/** The position before the first entry. */
export const chainStart: ChainPosition = { sequence: 0, hash: '' }

/** A position in the chain: the number of the last entry and its hash. */
export interface ChainPosition {
  readonly sequence: number
  readonly hash: string
}

/** An entry as it is stored, with its hash. */
export interface ChainLink {
  /** The text of `writeEntry`. */
  readonly entry: string
  readonly hash: string
}

/**
 * Why a chain is broken. `malformed`: not an entry in the canonical form. `gap`: earlier entries are missing.
 * `repeated`: a later entry precedes it. `changed`: its hash does not match it and the previous hash. `misfiled`: its
 * row has other values than the entry. `rewritten`: a checkpoint proves another hash here, so this or an earlier entry
 * was changed and the hashes were recomputed. `cut`: a checkpoint, or the head in the database, proves later entries,
 * which are missing. `head`: the head in the database is not the last entry. `checkpoint`: a checkpoint is forged.
 */
export interface ChainBreak {
  /** The number of the first entry that is invalid or missing. */
  readonly sequence: number
  readonly why: 'malformed' | 'gap' | 'repeated' | 'changed' | 'misfiled' | 'rewritten' | 'cut' | 'head' | 'checkpoint'
}

/** What is wrong with an entry, to continue a sentence after "at entry N:". */
export const breakReasons: Readonly<Record<ChainBreak['why'], string>> = {
  malformed: 'this is not an entry that svc-router wrote',
  gap: 'the entry is missing, but a later one exists',
  repeated: 'the entry appears where a later one belongs',
  changed: 'the entry or its hash was changed',
  misfiled: 'the columns of the row differ from the entry',
  rewritten: 'a checkpoint proves a different entry: this or an earlier one was changed and the hashes were recomputed',
  cut: 'the entry once existed but is missing',
  head: 'the last entry is not the one that the database recorded as its last',
  checkpoint: 'the checkpoint of this entry is forged',
}

/** The hash of an entry: SHA-256 of the previous hash and the entry's text, in base64url (contract 25.3). */
export function chainHash(previousHash: string, entry: string): string {
  return createHash('sha256').update(`${previousHash}\n${entry}`).digest('base64url')
}

/** One line of an exported log, without the line break. */
export function writeLink({ entry, hash }: ChainLink): string {
  return `{"entry":${entry},"hash":${JSON.stringify(hash)}}`
}

/** Parses a line of an exported log; undefined unless it is exactly what `writeLink` writes. */
export function readLink(line: string): ChainLink | undefined {
  const { entry, hash } = parseObject(line) ?? {}
  if (!isObject(entry) || typeof hash !== 'string') return undefined
  const link = { entry: JSON.stringify(entry), hash }
  return writeLink(link) === line ? link : undefined
}

/** Follows a chain entry by entry and reports the first break. */
export class ChainFollower {
  #at: ChainPosition
  readonly #proven: ReadonlyMap<number, string>

  /** `proven` are positions that checkpoints prove, by sequence number. */
  constructor(from: ChainPosition, proven: readonly ChainPosition[]) {
    this.#at = from
    this.#proven = new Map(proven.map(({ sequence, hash }) => [sequence, hash]))
  }

  /** The last valid entry. */
  get position(): ChainPosition {
    return this.#at
  }

  /** Checks the next entry and returns the break, if any. `undefined` means a line that is not an entry. */
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

  /** Checks at the end whether a checkpoint proves entries after the last one. */
  end(): ChainBreak | undefined {
    const last = Math.max(0, ...this.#proven.keys())
    return last > this.#at.sequence ? { sequence: this.#at.sequence + 1, why: 'cut' } : undefined
  }
}

/** The number of an entry in the canonical form; undefined otherwise. Its event may be of a newer version. */
function sequenceOf(entry: string): number | undefined {
  const value = parseObject(entry)
  const sequence = value?.['sequence']
  if (typeof sequence !== 'number' || !Number.isSafeInteger(sequence)) return undefined
  return JSON.stringify(value) === entry ? sequence : undefined
}
