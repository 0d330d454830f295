/** Pieces below this size are copied into blocks: even a Buffer of one byte takes a few hundred. */
const smallBytes = 4 * 1024
const blockBytes = 16 * 1024
/** Emptying a list takes V8 longer than replacing it. Nothing is ever added to this one. */
const noPieces: Buffer[] = []

/**
 * Collects bytes that arrive in pieces. Pieces of any size cost little more than their bytes. Memory is released
 * immediately instead of by the garbage collector, which sees a body as a few small objects.
 */
export class GatheredBytes {
  #pieces = noPieces
  /** The block for small pieces. Its first `#filled` bytes are part of `#pieces`. */
  #block: Buffer | undefined
  #filled = 0
  #length = 0

  get length(): number {
    return this.#length
  }

  /** The number of Buffers that hold the bytes. */
  get blocks(): number {
    return this.#pieces.length + (this.#block === undefined ? 0 : 1)
  }

  /** Adds a piece that nothing else uses from now on. */
  add(piece: Buffer): void {
    // Most bodies are one piece, which is never copied.
    if (this.#length === 0 || piece.length >= smallBytes) this.#push(piece)
    else this.#copySmall(piece)
  }

  /** Adds a copy of a piece whose memory the owner will reuse. */
  addCopy(piece: Buffer): void {
    // A small first piece is often the only one, and Node's pool costs less than a block.
    if (this.#length === 0 || piece.length >= smallBytes) this.#push(Buffer.from(piece))
    else this.#copySmall(piece)
  }

  /** Returns all bytes as one Buffer that the caller owns, and empties this object. */
  take(): Buffer {
    this.#endBlock()
    const [first = Buffer.alloc(0)] = this.#pieces
    const all = this.#pieces.length > 1 ? Buffer.concat(this.#pieces, this.#length) : first
    if (all === first) this.#pieces = noPieces
    this.free()
    return all
  }

  /** Releases the memory and empties this object. */
  free(): void {
    this.#block = undefined
    for (const piece of this.#pieces) freeBytes(piece)
    this.#pieces = noPieces
    this.#length = 0
  }

  #push(piece: Buffer): void {
    this.#endBlock()
    // Pushing to an empty list would make room for 17 pieces.
    if (this.#pieces.length === 0) this.#pieces = [piece]
    else this.#pieces.push(piece)
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

/** Releases the memory of a Buffer that nothing uses any more. Does nothing if the Buffer shares its memory. */
export function freeBytes({ buffer, byteLength }: Buffer): void {
  if (buffer instanceof ArrayBuffer && buffer.byteLength === byteLength && byteLength > 0) buffer.transfer(0)
}
