/** Audio of the lowest bit rate of these formats has this many characters of base64 per token. */
const base64PerToken = 32
/** How long an ID3 tag at the beginning of an MP3 file is without its content. */
const tagHeaderBytes = 10

/**
 * The most tokens of audio in base64 (contract 46.3). Undefined if its size says nothing about its length: in formats such as
 * FLAC, an hour of silence has a few kilobytes. For WAV and MP3, the content decides, because the stated format can be wrong.
 */
export function mostAudioTokens(data: string, format: string): number | undefined {
  const isSteady = format === 'pcm16' || (format === 'wav' && data.startsWith('UklGR')) || isMp3(data)
  return isSteady ? audioTokensOf(data) : undefined
}

/** The most tokens of such audio. */
export function audioTokensOf(data: string): number {
  return Math.ceil(data.length / base64PerToken)
}

function isMp3(data: string): boolean {
  const [i, d, three, , , , ...size] = bytesAt(data, 0, tagHeaderBytes)
  const isTagged = i === 0x49 && d === 0x44 && three === 0x33
  // Each byte has seven bits of the size.
  const tagBytes = isTagged ? tagHeaderBytes + size.reduce((sum, byte) => (sum << 7) | (byte & 0x7f), 0) : 0
  const [first = 0, second = 0] = bytesAt(data, tagBytes, 2)
  // A frame of layer III; those of AAC have the layer 0.
  return first === 0xff && (second & 0xe6) === 0xe2
}

function bytesAt(data: string, start: number, count: number): readonly number[] {
  const from = Math.floor(start / 3)
  const bytes = Buffer.from(data.slice(from * 4, Math.ceil((start + count) / 3) * 4), 'base64')
  return [...bytes.subarray(start - from * 3, start - from * 3 + count)]
}
