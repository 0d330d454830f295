import type { JsonObject } from '../domain/json.ts'
import { UpstreamError } from '../domain/upstream.ts'
import { maxAnswerDepth } from './json-limits.ts'
import { JsonScan, patchMembers } from './json-scan.ts'

const answerLimits = { maxDepth: maxAnswerDepth, maxTokens: 2_000_000, maxMembers: 2_000_000 }

/**
 * The same JSON object with some members replaced and all other bytes unchanged. @throws UpstreamError `broken` if it
 * is too deep or has too many parts
 */
export function patchJson(bytes: Buffer, changes: Readonly<Record<string, string>>): Buffer {
  return patchMembers(bytes, membersOf(bytes), changes)
}

/**
 * One event of a stream, as its lines in latin1 text, with members of its `response` replaced, or its own members if it
 * has none; all other bytes are unchanged. Also returns the parsed data. @throws UpstreamError as above
 */
export function patchEvent(
  block: string,
  changes: Readonly<Record<string, string>>,
): { readonly block: string; readonly data: JsonObject } {
  const lines = block.split('\n')
  const bytes = Buffer.from(dataOfLines(lines), 'latin1')
  const members = membersOf(bytes)
  const response = members.find(({ key }) => key === 'response')
  const restated =
    response === undefined
      ? changes
      : { response: patchJson(bytes.subarray(response.valueStart, response.valueEnd), changes).toString('utf8') }
  const data = patchMembers(bytes, members, restated)
  const others = lines.filter((line) => !line.startsWith('data:'))
  return {
    block: [...others, `data: ${data.toString('latin1').replaceAll('\n', '\ndata: ')}`].join('\n'),
    data: JSON.parse(data.toString('utf8')) as JsonObject,
  }
}

/** The data of one event's lines. */
export function dataOfLines(lines: readonly string[]): string {
  const data = lines.filter((line) => line.startsWith('data:'))
  return data.map((line) => (line.charCodeAt(5) === 0x20 ? line.slice(6) : line.slice(5))).join('\n')
}

function membersOf(bytes: Buffer): ReturnType<JsonScan['members']> {
  const scan = new JsonScan(answerLimits)
  try {
    scan.push(bytes)
  } catch {
    // The provider caused this, not the caller.
    throw new UpstreamError('broken')
  }
  return scan.members(bytes)
}
