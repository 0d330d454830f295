import type { Readable } from 'node:stream'
import { SetupError } from '../domain/setup-error.ts'

const maxInputBytes = 64 * 1024
const inputTimeoutMs = 30_000

/** Reads a stream to its end, bounded in size and time. @throws SetupError */
export async function readAll(stream: Readable, timeoutMs = inputTimeoutMs): Promise<string> {
  const chunks: Buffer[] = []
  let bytes = 0
  const timer = setTimeout(
    () =>
      stream.destroy(
        new SetupError(
          'nothing more came on standard input',
          'send the credential and end the input, for example: printenv NAME | …; without a credential: add --no-credential',
        ),
      ),
    timeoutMs,
  )
  try {
    for await (const chunk of stream) {
      const piece = Buffer.from(chunk as Uint8Array)
      bytes += piece.length
      if (bytes > maxInputBytes)
        throw new SetupError('standard input holds more than a credential', 'send the credential alone')
      chunks.push(piece)
    }
    return Buffer.concat(chunks).toString('utf8')
  } finally {
    clearTimeout(timer)
    stream.destroy()
  }
}
