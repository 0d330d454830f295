import type { Json, JsonObject } from '../domain/json.ts'
import { UpstreamError } from '../domain/upstream.ts'

/** Clients use positions as offsets of lists that they fill (contract 30.19). */
const maxPosition = 99_999
/** Events of one stream; `EventShapes` forwards no number with more digits unparsed. */
const maxSequence = 999_999_999

/** Members of an event that say where its content belongs. */
const positionMembers = ['output_index', 'content_index', 'summary_index', 'annotation_index'] as const

/** Checks a position in an answer; some servers leave it out. @throws UpstreamError `broken` */
export function checkPosition(value: Json | undefined): void {
  if (value !== undefined && value !== null && !isWhole(value, maxPosition)) throw new UpstreamError('broken')
}

/**
 * Checks the position of a tool call in a stream. AWS's sample gateway for Bedrock counts from -1 if no text precedes
 * the calls: clients that only compare positions accept it. @throws UpstreamError `broken`
 */
export function checkCallPosition(value: Json | undefined): void {
  if (value !== -1) checkPosition(value)
}

/** Checks all positions in an event of Responses, and its number. @throws UpstreamError `broken` */
export function checkPositions(event: JsonObject): void {
  for (const member of positionMembers) checkPosition(event[member])
  const { sequence_number: sequence } = event
  if (sequence !== undefined && sequence !== null && !isWhole(sequence, maxSequence)) throw new UpstreamError('broken')
}

function isWhole(value: Json, max: number): boolean {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= max
}
