import { setImmediate as nextTurn } from 'node:timers/promises'
import { bodyShape, JsonScan } from '../../formats/json-scan.ts'
import { isStreamId } from './create-message.ts'

const name = 'stream_id'
/** More than this member takes, with the spaces that anyone would write. */
const memberBytes = 1024
/** A longer part of a message is scanned in several turns of the event loop (contract 29.7). */
const turnBytes = 256 * 1024

/**
 * The `stream_id` of a message that is rejected unread, or that could not be read, if it has a valid one (contract 14.7).
 * `spend` is asked before more than 256 KiB are scanned; if it returns false, only these are.
 */
export function findStreamId(
  bytes: Buffer,
  spend: (bytes: number) => boolean,
): string | undefined | Promise<string | undefined> {
  const lastAt = bytes.lastIndexOf(`"${name}"`)
  if (lastAt < 0) return undefined
  const scan = new JsonScan(bodyShape)
  const part = bytes.subarray(0, lastAt + memberBytes)
  if (part.length > turnBytes && spend(part.length)) return findInTurns(part, scan)
  push(part.subarray(0, turnBytes), scan)
  return streamIdIn(part, scan)
}

async function findInTurns(part: Buffer, scan: JsonScan): Promise<string | undefined> {
  for (let from = 0; from < part.length; from += turnBytes) {
    if (!push(part.subarray(from, from + turnBytes), scan)) break
    await nextTurn()
  }
  return streamIdIn(part, scan)
}

/** Returns false if the message is too complex: then only what comes before can be found. */
function push(bytes: Buffer, scan: JsonScan): boolean {
  try {
    scan.push(bytes)
    return true
  } catch {
    return false
  }
}

function streamIdIn(part: Buffer, scan: JsonScan): string | undefined {
  const [member, ...others] = scan.members(part).filter(({ key }) => key === name)
  // Of two, either could be meant.
  if (member === undefined || others.length > 0) return undefined
  try {
    const value: unknown = JSON.parse(part.toString('utf8', member.valueStart, member.valueEnd))
    return isStreamId(value) ? value : undefined
  } catch {
    return undefined
  }
}
