const maxPieceCharacters = 2_048
/** A break is searched for in this last part of a piece. */
const breakFrom = 1_024

/**
 * Splits a whole text as a stream would: pieces of at most 2 kB that end with a paragraph, line, or word if possible.
 */
export function splitIntoPieces(text: string): string[] {
  const pieces: string[] = []
  let from = 0
  while (text.length - from > maxPieceCharacters) {
    const end = from + maxPieceCharacters
    const piece = from + lengthOfPiece(text.slice(from, end))
    pieces.push(text.slice(from, piece))
    from = piece
  }
  if (from < text.length) pieces.push(text.slice(from))
  return pieces
}

function lengthOfPiece(piece: string): number {
  for (const separator of ['\n\n', '\n', ' ']) {
    const at = piece.lastIndexOf(separator)
    if (at >= breakFrom) return at + separator.length
  }
  // Do not split a surrogate pair.
  const last = piece.charCodeAt(piece.length - 1)
  return last >= 0xd800 && last <= 0xdbff ? piece.length - 1 : piece.length
}
