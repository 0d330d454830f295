import { describe, expect, test } from 'vitest'
import type { AnswerEvent } from '../../src/domain/conversation.ts'
import type { ConversationFormatId } from '../../src/domain/format-id.ts'
import type { JsonObject } from '../../src/domain/json.ts'
import { UpstreamError } from '../../src/domain/upstream.ts'
import type { Format } from '../../src/formats/format.ts'
import { clientFormats, formatById, relayById } from '../../src/formats/formats.ts'
import { SseReader } from '../../src/formats/sse.ts'
import { RelayLane } from '../../src/gateway/lanes/relay-lane.ts'
import { TranslationLane } from '../../src/gateway/lanes/translation-lane.ts'
import { contentOf, contextOf, readStream } from '../formats/exchange.ts'
import { isLongRun } from '../long-run.ts'
import { clientSides } from './client-sides.ts'
import { formatIds, streamsOf, wholesOf, type RecordedFormatId, type StreamRecording } from './recordings.ts'

const clients = Object.values(clientFormats) as (Format & { readonly id: ConversationFormatId })[]
const streams = formatIds.flatMap(streamsOf)
const wholes = formatIds.flatMap(wholesOf)

function eventsOf(format: RecordedFormatId, chunks: Iterable<Uint8Array | string>): AnswerEvent[] {
  const sse = new SseReader()
  const reader = formatById(format).readAnswer()
  const events: AnswerEvent[] = []
  const read = (data: string): void => void events.push(...reader.readEvent(data))
  for (const chunk of chunks) for (const { data } of sse.push(chunk)) read(data)
  for (const { data } of sse.end()) read(data)
  events.push(...(reader.readEnd?.() ?? []))
  expect(reader.finished).toBe(true)
  return events
}

function bytesOf(text: string): Uint8Array[] {
  return Array.from(Buffer.from(text), (byte) => Uint8Array.of(byte))
}

/** In `npm test`, one in so many positions between the ends of events. */
const stride = isLongRun ? 1 : 5

/** Where a recording is split or truncated: always at the end of each event and next to it. */
function positionsIn({ text, boundaries, completeBytes }: StreamRecording): number[] {
  const near = new Set([...boundaries, completeBytes].flatMap((boundary) => [boundary - 1, boundary, boundary + 1]))
  return Array.from({ length: Buffer.byteLength(text) + 1 }, (_, at) => at).filter(
    (at) => at % stride === 0 || near.has(at),
  )
}

describe.each(streams)('$name', (recording) => {
  const { format, text, completeBytes, boundaries } = recording
  const bytes = Buffer.from(text)
  const whole = eventsOf(format, [bytes])

  test('the recording contains text, one end, and its usage', () => {
    const { reasons, usage, text: received, calls } = contentOf(whole)
    expect(reasons).toHaveLength(1)
    expect(usage).toMatchObject({ source: 'counted' })
    expect(received.length + calls.length).toBeGreaterThan(0)
  })

  test('the result is the same byte by byte and split in two anywhere', () => {
    expect(eventsOf(format, bytesOf(text))).toEqual(whole)
    for (const at of positionsIn(recording)) {
      expect(eventsOf(format, [bytes.subarray(0, at), bytes.subarray(at)])).toEqual(whole)
    }
  })

  test('the answer is finished after its terminal event and at no earlier event', () => {
    for (const boundary of [0, ...boundaries]) {
      const reader = formatById(format).readAnswer()
      for (const { data } of new SseReader().push(bytes.subarray(0, boundary))) reader.readEvent(data)
      expect(reader.finished, `after ${boundary} bytes`).toBe(boundary > completeBytes)
    }
  })
})

describe.each(wholes)('$name', ({ format, text }) => {
  test('the recording contains text, one end, and its usage', () => {
    const reader = formatById(format).readAnswer()
    const { reasons, usage, text: received, calls } = contentOf(reader.readWhole(JSON.parse(text) as JsonObject))
    expect(reader.finished).toBe(true)
    expect(reasons).toHaveLength(1)
    expect(usage).toMatchObject({ source: 'counted' })
    expect(received.length + calls.length).toBeGreaterThan(0)
  })
})

/** The lane between these formats, and whether it relays. */
function laneOf(format: RecordedFormatId, client: (typeof clients)[number]): RelayLane | TranslationLane {
  const conversation = client.readRequest(clientSides[client.id].ask('hi', true))
  const context = contextOf(conversation)
  const reader = formatById(format).readAnswer()
  if (format !== client.id) return new TranslationLane(reader, client.writeAnswer(context), 'someone', conversation)
  return new RelayLane(relayById(client.id), reader, context, true, 'someone')
}

const pairs = streams.flatMap((recording) => clients.map((client) => ({ recording, client })))

describe.each(pairs)('$recording.name for a $client.id client', ({ recording, client }) => {
  const { format, text, completeBytes } = recording
  const bytes = Buffer.from(text)

  test('the client reads the same answer', () => {
    const lane = laneOf(format, client)
    const written = Buffer.from(lane.push(bytes) + lane.end(), lane.encoding).toString('utf8')
    const { sealed, ...received } = contentOf(readStream(client, written).events)
    const { sealed: given, ...content } = contentOf(eventsOf(format, [bytes]))
    expect(received).toEqual(withoutForeign(content, client, format))
    // Only some formats can contain it. Those that can have it with its issuer's mark, after the format's own prefix.
    if (sealed.length > 0) {
      expect(sealed.map((one) => one.replace('svcr1.someone.', ''))).toEqual(given)
      for (const one of sealed) expect(one).toContain('svcr1.someone.')
    }
    expect(clientSides[client.id].saysSuccess(written)).toBe(true)
  })

  test('the output is the same wherever the input is split', () => {
    const lane = laneOf(format, client)
    const expected = lane.push(bytes) + lane.end()
    for (let at = 0; at <= bytes.length; at += 7) {
      const split = laneOf(format, client)
      const written = split.push(bytes.subarray(0, at)) + split.push(bytes.subarray(at)) + split.end()
      expect(written, `split at ${at}`).toBe(expected)
    }
    const slow = laneOf(format, client)
    expect(bytesOf(text).reduce((out, byte) => out + slow.push(Buffer.from(byte)), '') + slow.end()).toBe(expected)
  })

  test('the answer is broken if it is truncated at any byte', () => {
    for (const at of positionsIn(recording)) {
      const lane = laneOf(format, client)
      let written = lane.push(bytes.subarray(0, at))
      let thrown: unknown
      try {
        written += lane.end()
      } catch (error) {
        thrown = error
      }
      const isWhole = at >= completeBytes
      expect([at, thrown === undefined, clientSides[client.id].saysSuccess(written)]).toEqual([at, isWhole, isWhole])
      if (!isWhole) expect(thrown).toBeInstanceOf(UpstreamError)
    }
  })
})

describe.each(wholes.flatMap((recording) => clients.map((client) => ({ recording, client }))))(
  '$recording.name for a $client.id client',
  ({ recording: { format, text }, client }) => {
    test('the client reads the same answer', () => {
      const events = formatById(format)
        .readAnswer()
        .readWhole(JSON.parse(text) as JsonObject)
      const conversation = client.readRequest(clientSides[client.id].ask('hi', false))
      const written = client.writeAnswer(contextOf(conversation)).writeWhole(events)
      const { sealed: _, ...received } = contentOf(
        client.readAnswer().readWhole(JSON.parse(JSON.stringify(written)) as JsonObject),
      )
      const { sealed: __, ...content } = contentOf(events)
      expect(received).toEqual(withoutForeign(content, client, format))
    })
  },
)

/** Content that some formats cannot express. */
function withoutForeign<ReadContent extends { readonly logprobs: readonly unknown[] }>(
  content: ReadContent,
  client: Format,
  format: StreamRecording['format'],
): ReadContent {
  return client.id === format || client.id.startsWith('openai-') ? content : { ...content, logprobs: [] }
}
