import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { formatIds as conversationIds } from '../../src/domain/format-id.ts'

const fixtures = join(import.meta.dirname, '..', 'fixtures')

/** The formats for conversations. */
export type RecordedFormatId = (typeof conversationIds)[number]

/** A format's recorded answers, as files below tests/fixtures. */
interface FormatRecordings {
  readonly streams: readonly [string, ...string[]]
  readonly wholes: readonly [string, ...string[]]
  /** Matches the data of the terminal event, without which a stream is incomplete. */
  readonly terminal: RegExp
}

/** Every provider format; one without recordings is a type error (contract 35.4). */
export const recordings: Readonly<Record<RecordedFormatId, FormatRecordings>> = {
  'openai-chat': {
    streams: ['golden/chat-text.sse', 'golden/chat-tool-call.sse'],
    wholes: ['golden/chat.json'],
    terminal: /"finish_reason":"/,
  },
  'openai-responses': {
    streams: ['golden/response-text.sse', 'golden/response-function-call.sse', 'golden/response-reasoning.sse'],
    wholes: ['golden/response.json'],
    terminal: /"type":"response\.(?:completed|incomplete)"/,
  },
  // In the shapes that Anthropic documents, with made-up content.
  'anthropic-messages': {
    streams: ['anthropic/text.sse', 'anthropic/thought-and-tool-use.sse', 'anthropic/cut-by-length.sse'],
    wholes: ['anthropic/text.json', 'anthropic/thought-and-tool-use.json'],
    terminal: /"type":"message_stop"/,
  },
  gemini: {
    streams: ['gemini/text.sse', 'gemini/thoughts-and-parallel-calls.sse', 'gemini/cut-by-length.sse'],
    wholes: ['gemini/text.json', 'gemini/call.json'],
    terminal: /"finishReason":/,
  },
}

export const formatIds = Object.keys(recordings) as RecordedFormatId[]

export interface Recording {
  readonly format: RecordedFormatId
  readonly name: string
  readonly text: string
}

export interface StreamRecording extends Recording {
  /** The number of bytes after which it is complete: up to its terminal event, without the line end. */
  readonly completeBytes: number
  /** The byte offsets at which events end, in order. */
  readonly boundaries: readonly number[]
}

/** Every recorded stream of that format. */
export function streamsOf(format: RecordedFormatId): StreamRecording[] {
  const { streams, terminal } = recordings[format]
  return streams.map((name) => {
    const text = read(name)
    const events = text.split(/(?<=\n\r?\n)/)
    const last = events.findIndex((event) => terminal.test(event))
    if (last < 1) throw new Error(`${name} has no terminal event, or nothing before it`)
    const boundaries: number[] = []
    let bytes = 0
    for (const event of events) boundaries.push((bytes += Buffer.byteLength(event)))
    const completeBytes = boundaries[last - 1]! + Buffer.byteLength(events[last]!.trimEnd())
    return { format, name, text, completeBytes, boundaries }
  })
}

/** Every recorded non-streaming answer of that format. */
export function wholesOf(format: RecordedFormatId): Recording[] {
  return recordings[format].wholes.map((name) => ({ format, name, text: read(name) }))
}

function read(name: string): string {
  return readFileSync(join(fixtures, name), 'utf8')
}
