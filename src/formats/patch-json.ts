import { type Json, type JsonObject, objectOf } from '../domain/json.ts'
import { UpstreamError } from '../domain/upstream.ts'
import { runAtOnce } from '../runtime/yield-to-event-loop.ts'
import { maxAnswerDepth } from './json-limits.ts'
import { JsonScan, patchMembers } from './json-scan.ts'

const bytesPerStep = 2 * 1024 * 1024
/** At least what `isTooComplex` accepts. */
const answerLimits = { maxDepth: maxAnswerDepth, maxTokens: 4_500_000, maxMembers: 4_000_000 }

/**
 * The same JSON object with some members replaced and all other bytes unchanged. @throws UpstreamError `broken` if it
 * is too deep or has too many parts
 */
export function patchJson(bytes: Buffer, changes: Readonly<Record<string, string>>): Buffer {
  return runAtOnce(patchJsonInSteps(bytes, changes))
}

/** The same in steps of a few milliseconds each, for large answers. */
export function* patchJsonInSteps(bytes: Buffer, changes: Readonly<Record<string, string>>): Generator<void, Buffer> {
  const members = yield* scanMembers(bytes)
  return patchMembers(bytes, members, changes)
}

/**
 * One event of a stream, as its lines in latin1 text, with members of its `response` replaced, or its own members if it
 * has none; all other bytes are unchanged. @throws UpstreamError as above
 */
export function patchEvent(block: string, changes: Readonly<Record<string, string>>): string {
  const lines = block.split('\n')
  const bytes = Buffer.from(dataOfLines(lines), 'latin1')
  const members = runAtOnce(scanMembers(bytes))
  const response = members.find(({ key }) => key === 'response')
  const patches =
    response === undefined
      ? changes
      : { response: patchJson(bytes.subarray(response.valueStart, response.valueEnd), changes).toString('utf8') }
  const data = patchMembers(bytes, members, patches)
  const others = lines.filter((line) => !line.startsWith('data:'))
  return [...others, `data: ${data.toString('latin1').replaceAll('\n', '\ndata: ')}`].join('\n')
}

/** The parsed data of that event with the same changes. */
export function patchData(data: JsonObject, changes: Readonly<Record<string, string>>): JsonObject {
  const members = Object.entries(changes).map(([name, json]) => [name, JSON.parse(json) as Json] as const)
  const changed = Object.fromEntries(members)
  const response = data['response']
  return response === undefined ? { ...data, ...changed } : { ...data, response: { ...objectOf(response), ...changed } }
}

/** The data of one event's lines. */
export function dataOfLines(lines: readonly string[]): string {
  const data = lines.filter((line) => line.startsWith('data:'))
  return data.map((line) => (line.charCodeAt(5) === 0x20 ? line.slice(6) : line.slice(5))).join('\n')
}

/** The members of the top-level object, in steps. @throws UpstreamError `broken` */
export function* scanMembers(bytes: Buffer): Generator<void, ReturnType<JsonScan['members']>> {
  const scan = new JsonScan(answerLimits)
  for (let from = 0; from < bytes.length; from += bytesPerStep) {
    if (from > 0) yield
    try {
      scan.push(bytes.subarray(from, from + bytesPerStep))
    } catch {
      // The provider caused this, not the caller.
      throw new UpstreamError('broken')
    }
  }
  return scan.members(bytes)
}
