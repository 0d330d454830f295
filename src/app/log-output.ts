import { constants, fstatSync, open, write as writeFile } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'

const standardError = 2
/** Wait before writing to a full pipe again, milliseconds. */
const fullPauseMs = 20

const openFile = promisify(open)
const writeBytes = promisify(writeFile)

/**
 * Writes to standard error without blocking the event loop, which `process.stderr` does for files and pipes. A pipe is
 * reopened as non-blocking, so that a slow reader does not occupy a thread. Text that cannot be written, because the
 * reader closed the pipe or the disk is full, is dropped: request records do not depend on the log.
 */
export function openLogOutput(): (text: string) => Promise<void> {
  let target: Promise<number> | undefined
  return async (text) => {
    const bytes = Buffer.from(text)
    try {
      const fd = await (target ??= openTarget())
      for (let at = 0; at < bytes.length;) {
        at += await writeSome(fd, bytes, at)
      }
    } catch {
      // Dropped, as described above.
    }
  }
}

async function openTarget(): Promise<number> {
  if (!fstatSync(standardError).isFIFO()) return standardError
  try {
    return await openFile(`/proc/self/fd/${standardError}`, constants.O_WRONLY | constants.O_NONBLOCK)
  } catch {
    return standardError
  }
}

async function writeSome(fd: number, bytes: Buffer, from: number): Promise<number> {
  for (;;) {
    try {
      return (await writeBytes(fd, bytes, from)).bytesWritten
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === 'EAGAIN')) throw error
    }
    // `ref: false`: a stalled reader must not keep the process alive.
    await sleep(fullPauseMs, undefined, { ref: false })
  }
}
