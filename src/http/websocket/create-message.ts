import { invalidRequest } from '../../domain/errors.ts'
import type { Json, JsonObject } from '../../domain/json.ts'
import { bodyShape, JsonScan, patchMembers } from '../../formats/json-scan.ts'
import type { ModelRequest } from '../../gateway/ports.ts'
import { readJson, tooLarge, type JsonBody } from '../read-body.ts'
import { replayHistory, type HistoryNode } from './connection-cache.ts'

/** As OpenAI documents it. */
const streamIdShape = /^[A-Za-z0-9_.-]{1,256}$/
/** Fields of a message that are not part of the request; `stream` is implied. */
const envelope = { type: undefined, generate: undefined, stream_id: undefined, stream: 'true' } as const
const maxShownChars = 40

/** Whether a value is a valid `stream_id`. */
export function isStreamId(value: unknown): value is string {
  return typeof value === 'string' && streamIdShape.test(value)
}

/** A message that requests an answer. */
export interface CreateMessage {
  readonly json: JsonBody
  /** False if the message only prepares for a later answer. */
  readonly generate: boolean
  /** Repeated in every event of the answer (contract 14.7). */
  readonly streamId: string | undefined
  readonly previousId: string | undefined
}

/**
 * Parses a message; undefined for one that needs no answer (contract 14.11).
 * @throws ServiceError as `readJson`, and `invalid_request`
 */
export async function readMessage(bytes: Buffer, maxBytes: number): Promise<CreateMessage | undefined> {
  const json = await readJson(bytes, maxBytes)
  const { type, generate = null, stream_id: streamId = null, previous_response_id: previousId } = json.body
  // Codex acknowledges answers if it is configured to.
  if (type === 'response.processed') return undefined
  if (type !== 'response.create') throw unknownType(type)
  if (generate !== null && typeof generate !== 'boolean') {
    throw invalidRequest('generate', 'generate must be true or false.')
  }
  if (streamId !== null && !isStreamId(streamId)) {
    throw invalidRequest('stream_id', 'stream_id must be 1 to 256 letters, digits, underscores, hyphens, and periods.')
  }
  return {
    json,
    generate: generate !== false,
    streamId: streamId ?? undefined,
    previousId: typeof previousId === 'string' && previousId !== '' ? previousId : undefined,
  }
}

/**
 * The request that a message makes. `before` is the answer on this connection that its `previous_response_id` names;
 * its history is sent in full, because no backend and no store has it.
 * @throws ServiceError as `readJson`
 */
export async function requestOf(
  { json, previousId }: CreateMessage,
  before: HistoryNode | undefined,
  maxBytes: number,
): Promise<Pick<ModelRequest, 'bytes' | 'members' | 'body' | 'previousResponseId'>> {
  if (before === undefined) return withoutEnvelope(json)
  const { text, storedId } = replayHistory(before)
  const input = [text, inputText(json)].filter((part) => part !== '').join(',')
  const previous = storedId === undefined ? undefined : JSON.stringify(storedId)
  const changes = { ...envelope, input: `[${input}]`, previous_response_id: previous }
  const bytes = patchMembers(json.bytes, json.members, changes)
  if (bytes.length > maxBytes) throw tooLarge(maxBytes)
  return { ...(await readJson(bytes, maxBytes)), previousResponseId: previousId }
}

/** The items of a message's own input as they were written, without brackets. */
export function inputText({ bytes, members, body }: JsonBody): string {
  const member = members.find(({ key }) => key === 'input')
  if (member === undefined || body['input'] === null) return ''
  const text = bytes.toString('utf8', member.valueStart, member.valueEnd).trim()
  return text.startsWith('[') ? text.slice(1, -1).trim() : `{"type":"message","role":"user","content":${text}}`
}

/** The items of an answer, in the same form. */
export function outputText(response: JsonObject): string {
  return JSON.stringify(response['output'] ?? []).slice(1, -1)
}

function withoutEnvelope({ bytes, members, body }: JsonBody): JsonBody {
  const request = patchMembers(bytes, members, envelope)
  const scan = new JsonScan(bodyShape)
  scan.push(request)
  const { type: _type, generate: _generate, stream_id: _streamId, ...rest } = body
  return { bytes: request, members: scan.members(request), body: { ...rest, stream: true } }
}

function unknownType(type: Json | undefined): Error {
  // The value is the caller's and could be anything, so only a plain one is repeated.
  const isPlain = typeof type === 'string' && type.length <= maxShownChars && /^[\w.]+$/.test(type)
  const what = isPlain
    ? `Messages of type ${type} are not supported.`
    : 'The type of this message is missing or unknown.'
  return invalidRequest('type', `${what} Send a message of type response.create.`)
}
