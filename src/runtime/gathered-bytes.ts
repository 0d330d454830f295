/** Smaller pieces are copied into blocks: a Buffer of one byte takes some hundred. */
const smallBytes = 4 * 1024
const blockBytes = 16 * 1024

/**
 * Bytes that arrive in pieces, until all of them are there. Pieces of any size cost little more than their bytes, and memory
 * is given back at once where it would otherwise wait for the garbage collector, which sees bodies as a few small objects.
 */
export class GatheredBytes {
  readonly #pieces: Buffer[] = []
  /** Where small pieces go: its first `#filled` bytes are part of `#pieces`. */
  #block: Buffer | undefined
  #filled = 0
  #length = 0

  get length(): number {
    return this.#length
  }

  /** How many Buffers hold them. */
  get blocks(): number {
    return this.#pieces.length + (this.#block === undefined ? 0 : 1)
  }

  /** Takes a piece that nobody else uses from here on. */
  add(piece: Buffer): void {
    // Most bodies are one piece, which is never copied.
    if (this.#length === 0 || piece.length >= smallBytes) this.#push(piece)
    else this.#copySmall(piece)
  }

  /** Takes the bytes of a piece whose memory its owner uses again. */
  addCopy(piece: Buffer): void {
    // A first small piece is often the only one: Node's pool costs less than a block.
    if (this.#length === 0 || piece.length >= smallBytes) this.#push(Buffer.from(piece))
    else this.#copySmall(piece)
  }

  /** All bytes, as one Buffer that the caller owns. Nothing is left here. */
  take(): Buffer {
    this.#endBlock()
    const [first = Buffer.alloc(0)] = this.#pieces
    const all = this.#pieces.length > 1 ? Buffer.concat(this.#pieces, this.#length) : first
    if (all === first) this.#pieces.length = 0
    this.free()
    return all
  }

  /** Gives the memory back; nothing is left here. */
  free(): void {
    this.#block = undefined
    for (const piece of this.#pieces) freeBytes(piece)
    this.#pieces.length = 0
    this.#length = 0
  }

  #push(piece: Buffer): void {
    this.#endBlock()
    this.#pieces.push(piece)
    this.#length += piece.length
  }

  #copySmall(piece: Buffer): void {
    this.#length += piece.length
    let from = 0
    while (from < piece.length) {
      this.#block ??= Buffer.allocUnsafeSlow(blockBytes)
      const copied = piece.copy(this.#block, this.#filled, from)
      from += copied
      this.#filled += copied
      if (this.#filled === blockBytes) this.#endBlock()
    }
  }

  #endBlock(): void {
    if (this.#block === undefined) return
    this.#pieces.push(this.#block.subarray(0, this.#filled))
    this.#block = undefined
    this.#filled = 0
  }
}

/** Gives the memory of a Buffer back that nobody uses any more; of one that shares its memory nothing. */
export function freeBytes({ buffer, byteLength }: Buffer): void {
  if (buffer instanceof ArrayBuffer && buffer.byteLength === byteLength && byteLength > 0) buffer.transfer(0)
}
