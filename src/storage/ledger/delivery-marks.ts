import { closeSync, fsyncSync, openSync, readFileSync, readSync, writeSync } from 'node:fs'
import { markPath } from '../data-folder.ts'

/** Marks in the ring. The number of undecided requests must never exceed it. */
export const markCapacity = 65_536
/** The longest request id that fits into a mark. */
export const markedIdLength = 32

const headerBytes = 64
const slotBytes = 8 + markedIdLength
const fileBytes = headerBytes + markCapacity * slotBytes
/**
 * The file is filled in small pieces: the kernel caches a large piece such that later writes into it cost ten times as
 * much.
 */
const fillBytes = 4096
const bootIdFile = '/proc/sys/kernel/random/boot_id'
/** Numbers per ring, so that the number of a mark tells which worker's ring it belongs to. */
const numbersPerRing = 2 ** 40

/** The number of the first mark of a process that writes the only ring, or of a worker. */
export function firstMark(worker?: number): number {
  return worker === undefined ? 1 : (worker + 1) * numbersPerRing + 1
}

/** The marks of earlier processes: of one ring, or of all rings of a data folder. */
export interface DeliveryHistory {
  /** Whether every mark is present. False after a reboot, which may have lost marks that were not yet on disk. */
  readonly complete: boolean
  readonly ids: ReadonlySet<string>
  /** The number of the next mark of each ring. */
  readonly next: readonly number[]
}

/** The history of several rings together. */
export function joinHistories(histories: readonly DeliveryHistory[]): DeliveryHistory {
  const ids = new Set<string>()
  for (const history of histories) for (const id of history.ids) ids.add(id)
  return { complete: histories.every(({ complete }) => complete), ids, next: histories.flatMap(({ next }) => next) }
}

/** Where answers are marked: a `DeliveryMarks`, or what stands in for it in a simulation. */
export type MarkRing = Pick<DeliveryMarks, 'next' | 'add'>

/**
 * A ring of marks, one for each answer whose first byte was about to be sent. A mark is one write into the page cache:
 * it survives a crash of the process, but not always one of the machine.
 */
export class DeliveryMarks {
  readonly #file: number
  readonly #slot = Buffer.alloc(slotBytes)
  #next: number

  private constructor(file: number, next: number) {
    this.#file = file
    this.#next = next
  }

  /**
   * Creates an empty ring in a data folder, replacing the old one: read its history first. It belongs to the boot
   * `bootId`, and its first mark gets the number `first`.
   */
  static create(folder: string, bootId: string | undefined, first = firstMark()): DeliveryMarks {
    const ring = openSync(markPath(folder), 'w+', 0o600)
    try {
      const zeros = Buffer.alloc(fillBytes)
      for (let at = 0; at < fileBytes; at += fillBytes) {
        writeSync(ring, zeros, 0, Math.min(fillBytes, fileBytes - at), at)
      }
      // Room on the disk is claimed now, not by the first mark that needs it.
      fsyncSync(ring)
      const header = Buffer.alloc(headerBytes)
      header.write(bootId ?? '', 0, 'latin1')
      writeSync(ring, header, 0, headerBytes, 0)
      return new DeliveryMarks(ring, first)
    } catch (error) {
      closeSync(ring)
      throw error
    }
  }

  /**
   * Continues the ring that an earlier process of this boot left in a folder, or creates one. Records that were charged
   * before the earlier process died are decided by its marks for as long as they are undecided.
   */
  static continue(folder: string, bootId: string | undefined, first: number): DeliveryMarks {
    const { complete, next } = readDeliveryHistory(folder, bootId, first)
    if (!complete) return DeliveryMarks.create(folder, bootId, first)
    return new DeliveryMarks(openSync(markPath(folder), 'r+'), next[0]!)
  }

  /** The number that the next mark gets. */
  get next(): number {
    return this.#next
  }

  /** Marks the request; the mark is written when this returns. @throws the system's error */
  add(requestId: string): void {
    this.#slot.fill(0, 8)
    this.#slot.writeDoubleLE(this.#next, 0)
    this.#slot.write(requestId, 8, 'latin1')
    const at = headerBytes + (this.#next % markCapacity) * slotBytes
    if (writeSync(this.#file, this.#slot, 0, slotBytes, at) !== slotBytes)
      throw new Error('a delivery mark was written only in part')
    this.#next += 1
  }

  close(): void {
    closeSync(this.#file)
  }
}

/** Reads the ring that an earlier process left in a data folder. `first` is the number of its first mark. */
export function readDeliveryHistory(folder: string, bootId: string | undefined, first = firstMark()): DeliveryHistory {
  const nothing: DeliveryHistory = { complete: false, ids: new Set(), next: [first] }
  let file: number
  try {
    file = openSync(markPath(folder), 'r')
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return nothing
    throw error
  }
  const bytes = Buffer.alloc(fileBytes)
  try {
    if (readSync(file, bytes, 0, fileBytes, 0) !== fileBytes) return nothing
  } finally {
    closeSync(file)
  }
  const complete = bootId !== undefined && readText(bytes, 0, headerBytes) === bootId
  const ids = new Set<string>()
  let next = first
  for (let at = headerBytes; at < fileBytes; at += slotBytes) {
    const number = bytes.readDoubleLE(at)
    if (number === 0) continue
    ids.add(readText(bytes, at + 8, markedIdLength))
    next = Math.max(next, number + 1)
  }
  return { complete, ids, next: [next] }
}

/**
 * Whether an earlier process may have delivered a request. `dueMark` is the number of the next mark of its ring when it
 * was charged: if the ring does not reach back that far, its mark may be overwritten. Null if the ring always does.
 */
export function mayHaveBeenDelivered(
  requestId: string,
  dueMark: number | null,
  { complete, ids, next }: DeliveryHistory,
): boolean {
  if (!complete || ids.has(requestId)) return true
  if (dueMark === null) return false
  const ring = Math.floor(dueMark / numbersPerRing)
  const ringNext = next.find((number) => Math.floor(number / numbersPerRing) === ring)
  return ringNext === undefined || dueMark < ringNext - markCapacity
}

/** Identifies the current boot of the machine; undefined if the system does not report one. */
export function readBootId(): string | undefined {
  try {
    return readFileSync(bootIdFile, 'latin1').trim()
  } catch {
    // Not Linux: every start counts as a reboot.
    return undefined
  }
}

function readText(bytes: Buffer, at: number, length: number): string {
  const end = bytes.indexOf(0, at)
  return bytes.toString('latin1', at, end < 0 || end > at + length ? at + length : end)
}
