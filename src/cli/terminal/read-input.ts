import type { Readable } from 'node:stream'
import { SetupError } from '../../runtime/setup-error.ts'

const maxInputBytes = 64 * 1024
const inputTimeoutMs = 30_000

/**
 * Reads a stream to its end, with a timeout and a size limit: that of a credential, unless it is a file. @throws
 * SetupError
 */
export async function readAll(stream: Readable, timeoutMs = inputTimeoutMs, maxFileBytes?: number): Promise<string> {
  const maxBytes = maxFileBytes ?? maxInputBytes
  const chunks: Buffer[] = []
  let bytes = 0
  const timer = setTimeout(
    () =>
      stream.destroy(
        new SetupError(
          'timed out waiting for standard input to end',
          'pipe the credential in, for example: printenv NAME | …; if there is no credential, add --no-credential',
        ),
      ),
    timeoutMs,
  )
  try {
    for await (const chunk of stream) {
      const piece = Buffer.from(chunk as Uint8Array)
      bytes += piece.length
      if (bytes > maxBytes)
        throw maxFileBytes === undefined
          ? new SetupError('standard input is too large for a credential', 'pipe in only the credential')
          : new SetupError('standard input is too large', 'split the file')
      chunks.push(piece)
    }
    return Buffer.concat(chunks).toString('utf8')
  } finally {
    clearTimeout(timer)
    stream.destroy()
  }
}
