import { constants, fstatSync, open, write as writeFile } from 'node:fs'
import { promisify } from 'node:util'
import { setTimeout as sleep } from 'node:timers/promises'

const standardError = 2
/** Before a pipe that is full is tried again. */
const fullPauseMs = 20

const openFile = promisify(open)
const writeBytes = promisify(writeFile)

/**
 * Writes to standard error without blocking the event loop: `process.stderr` blocks it where that is a file or a pipe. A
 * pipe is opened once more as non-blocking, so that its reader holds up no thread either. What cannot be written any
 * more, because the reader left or the disk is full, is dropped: the records of requests do not depend on the log.
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
      // See above.
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
    // A reader that reads nothing does not keep the process from ending.
    await sleep(fullPauseMs, undefined, { ref: false })
  }
}
