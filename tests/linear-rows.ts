import type { IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import { brotliCompressSync, constants, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib'
import { clientAddress } from '../src/domain/client-address.ts'
import type { ConversationFormatId, FormatId } from '../src/domain/format-id.ts'
import type { Json, JsonObject } from '../src/domain/json.ts'
import { classifyRejection } from '../src/formats/answer-faults.ts'
import { holdsEncrypted, markText, unmarkMember } from '../src/formats/encrypted-reasoning.ts'
import { formatById, relayById } from '../src/formats/formats.ts'
import { elementsOf } from '../src/formats/json-elements.ts'
import { bodyShape, JsonScan } from '../src/formats/json-scan.ts'
import { patchJson, patchEvent } from '../src/formats/patch-json.ts'
import { SseReader } from '../src/formats/sse.ts'
import { findJsonObject } from '../src/gateway/fusion/engine/answer/find-json-object.ts'
import { vectorize } from '../src/gateway/fusion/engine/panel/similarity.ts'
import { shortenMiddle } from '../src/gateway/fusion/engine/shorten-middle.ts'
import { splitIntoPieces } from '../src/gateway/fusion/engine/split-into-pieces.ts'
import { RelayLane } from '../src/gateway/lanes/relay-lane.ts'
import { TranslationLane } from '../src/gateway/lanes/translation-lane.ts'
import { writeBody } from '../src/gateway/request/backend-request.ts'
import { LearnedLimits } from '../src/gateway/routing/learned-limits.ts'
import { EdgeGate } from '../src/http/edge-gate.ts'
import { pathOf } from '../src/http/paths.ts'
import { readJsonBody } from '../src/http/read-body.ts'
import { parseRequestHeaders } from '../src/http/request-headers.ts'
import { AnswerParser } from '../src/providers/http/answer-parser.ts'
import { readHead } from '../src/providers/http/head.ts'
import { systemClock } from '../src/runtime/clock.ts'
import { readSessionToken } from '../src/web/http/session-cookie.ts'
import { contextOf } from './formats/exchange.ts'
import { someBackend } from './gateway/routing/some-backend.ts'

/**
 * One parser, pattern, or buffer with its worst-case input. `prepare` creates an input of about `size` bytes (or
 * pieces) and returns a function that reads it, and only that function is timed. Choose `size` so that it takes about a
 * millisecond.
 */
export interface LinearRow {
  readonly what: string
  readonly size: number
  readonly prepare: (size: number) => () => void | Promise<void>
}

/** Add a row for every reader of external text. */
export const linearRows: readonly LinearRow[] = [
  ...unframedStreams(),
  ...deltaStreams(),
  ...answerFraming(),
  ...jsonText(),
  ...modelText(),
  ...requestHeaders(),
  ...compressedBodies(),
]

const conversationOf = (client: ConversationFormatId) =>
  formatById(client).readRequest({ model: 'p', messages: [], input: 'x', max_tokens: 9, stream: true })

function relayLane(client: ConversationFormatId): RelayLane {
  const context = contextOf(conversationOf(client))
  return new RelayLane(relayById(client), formatById(client).readAnswer(), context, true, 'someone')
}

function translationLane(client: ConversationFormatId, provider: FormatId): TranslationLane {
  const conversation = conversationOf(client)
  const writer = formatById(client).writeAnswer(contextOf(conversation))
  return new TranslationLane(formatById(provider).readAnswer(), writer, 'someone', conversation)
}

/** Pushes the parts one by one. Rejections by the reader do not matter here. */
function pushAll(reader: { push(chunk: Buffer): unknown }, parts: readonly Buffer[]): () => void {
  return () => {
    for (const part of parts) {
      try {
        reader.push(part)
      } catch {
        // Rejected, so it causes no more work.
      }
    }
  }
}

/** Lines without the empty line that ends an event, first in one read and then in very small ones. */
function unframedStreams(): LinearRow[] {
  const lanes = [
    ['relay', () => relayLane('openai-chat')],
    ['translation', () => translationLane('openai-responses', 'openai-chat')],
    ['an SSE reader', () => new SseReader()],
  ] as const
  const inputs = [
    ['lines without an end of the event', 'data:x\n', 'x\n'],
    ['one line without an end', 'data:xxx', 'xx'],
    ['empty data lines', 'data:\n', 'd'],
    ['carriage returns', 'data:x\r', '\r'],
    ['comments', ': x\n', ':\n'],
    ['empty lines', '\n\n', '\n'],
  ] as const
  return lanes.flatMap(([lane, open]) =>
    inputs.map(([input, block, piece]) => ({
      what: `${lane}: ${input}, in small reads`,
      size: 6_000,
      prepare: (size: number) => {
        const small = Buffer.from(piece)
        const parts = [Buffer.from(block.repeat(size)), ...Array.from({ length: size }, () => small)]
        return pushAll(open(), parts)
      },
    })),
  )
}

const callChunk = (text: string): string =>
  `data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":${JSON.stringify(text)}}}]}}]}\n\n`

/** Many small deltas: earlier text is never read again. */
function deltaStreams(): LinearRow[] {
  const text = (index: number): string =>
    `data: {"choices":[{"index":0,"delta":{"content":"${index % 7 === 0 ? '\\"' : 'x'}"}}]}\n\n`
  const events = {
    'of text': text,
    'of one call’s arguments': () => callChunk('x'),
    'that each begin another call': (index: number) =>
      callChunk('{}').replace('"index":0,"id":"a"', `"index":${index},"id":"a${index}"`),
    'that each end a line within a name': () => 'data: {"choices":[],"model":"model":"\n\n',
  }
  const lanes = [
    ['relay', () => relayLane('openai-chat')],
    ...(['openai-chat', 'openai-responses', 'anthropic-messages'] as const).map(
      (client) => [`chat to ${client}`, () => translationLane(client, 'openai-chat')] as const,
    ),
  ] as const
  return lanes.flatMap(([lane, open]) =>
    Object.entries(events).flatMap(([which, event]) =>
      (['one read', 'a read each'] as const).map((how) => ({
        what: `${lane}: deltas ${which}, ${how}`,
        size: 1_000,
        prepare: (size: number) => {
          const parts = Array.from({ length: size }, (_, index) => Buffer.from(event(index)))
          return pushAll(open(), how === 'one read' ? [Buffer.concat(parts)] : parts)
        },
      })),
    ),
  )
}

/** HTTP in single bytes, and framing that is longer than its content. */
function answerFraming(): LinearRow[] {
  const parse = (text: string): (() => void) => {
    const parser = new AnswerParser({ onAnswerHead() {}, onAnswerData() {}, onAnswerEnd() {} })
    parser.expect()
    return pushAll(
      parser,
      Array.from(Buffer.from(text, 'latin1'), (byte) => Buffer.of(byte)),
    )
  }
  const head = 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n'
  return [
    { what: 'an answer’s head, byte by byte', size: 3_500, prepare: (size) => parse(`${head}x: ${'y'.repeat(size)}`) },
    {
      what: 'an answer’s many fields, byte by byte',
      size: 3_500,
      prepare: (size) => parse(`${head}${'a: b\r\n'.repeat(size / 6)}\r\n`),
    },
    {
      what: 'an answer in chunks of one byte, byte by byte',
      size: 2_000,
      prepare: (size) => parse(`${head}\r\n${'1\r\nx\r\n'.repeat(size)}`),
    },
    {
      what: 'an answer’s head in words of blanks',
      size: 50_000,
      prepare: (size) => {
        const value = ' \u0001'.repeat(size)
        return () => void readHead(200, { 'x-request-id': value, 'content-type': value, 'retry-after': value }, () => 0)
      },
    },
  ]
}

/** Marks for prompt caches, in bodies of many small blocks, messages, tools, and escaped quotes. */
function cacheMarks(): LinearRow[] {
  const parts: Readonly<Record<string, (size: number) => string>> = {
    'many blocks with marks': (size) => {
      const block = '{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}'
      return `"messages":[{"role":"user","content":[${Array.from({ length: size }, () => block).join()}]}]`
    },
    'many messages': (size) => {
      const turns = '{"role":"assistant","content":"\\\\\\""},{"role":"user","content":" "}'
      return `"messages":[${Array.from({ length: size }, () => turns).join()}]`
    },
    'many tools': (size) => {
      const tools = Array.from({ length: size }, (_, at) => `{"name":"t${at}","input_schema":{"a":[1,2,{}]}}`)
      return `"tools":[${tools.join()}],"messages":[{"role":"user","content":"${'\\"'.repeat(size)}"}]`
    },
  }
  const backend = someBackend('b', { format: 'anthropic-messages', model: 'claude-opus-5' })
  const chat = someBackend('c', { model: 'anthropic/claude-opus-5' })
  const openRouter = { ...chat, dialect: { ...chat.dialect, cacheMarks: 'cache_control' as const } }
  const deps = { formats: formatById, relays: relayById, learned: new LearnedLimits(systemClock()) }
  return Object.entries(parts).flatMap(([what, write]) =>
    [backend, openRouter].map((one) => ({
      what: `cache marks for ${one.format} in ${what}`,
      size: 2_000,
      prepare: (size: number) => {
        const bytes = Buffer.from(`{"model":"p","max_tokens":9,${write(size)}}`)
        const scan = new JsonScan(bodyShape)
        scan.push(bytes)
        const body = JSON.parse(bytes.toString()) as JsonObject
        const continuation = { isSeen: true, isExpected: false, began: 1, wentOn: 1 }
        const cache = { accountId: 'a', addsMarks: true, keys: undefined, continuation }
        const id = 'req_1'
        const format = 'anthropic-messages'
        const request = { id, format, bytes, members: scan.members(bytes), body, timeoutMs: undefined, cache } as const
        const conversation = formatById(format).readRequest(body)
        return () => void writeBody(one, request, conversation, deps)
      },
    })),
  )
}

function jsonText(): LinearRow[] {
  const chatSealing = relayById('openai-responses').encryptedReasoning!
  const messagesSealing = relayById('anthropic-messages').encryptedReasoning!
  return [
    {
      what: 'the scan of a body, byte by byte in a string of backslashes',
      size: 20_000,
      prepare: (size) =>
        pushAll(
          new JsonScan(bodyShape),
          Array.from(Buffer.from(`{"a":"${'\\'.repeat(size)}`), (byte) => Buffer.of(byte)),
        ),
    },
    {
      what: 'the scan of a body, many short strings',
      size: 50_000,
      prepare: (size) => pushAll(new JsonScan(bodyShape), [Buffer.from(`[${'"\\"",'.repeat(size)}`)]),
    },
    ...cacheMarks(),
    {
      what: 'the elements of a list of escaped quotes',
      size: 50_000,
      prepare: (size) => {
        const json = `["${'\\\\\\"'.repeat(size)}"${',"x"'.repeat(size)}]`
        return () => void elementsOf(json)
      },
    },
    {
      what: 'members of a whole answer that are replaced',
      size: 900,
      prepare: (size) => {
        const object = Object.fromEntries(
          Array.from({ length: Math.min(size, 900) }, (_, index) => [`m${index}`, index]),
        )
        const bytes = Buffer.from(JSON.stringify({ ...object, x: 'y'.repeat(size * 100) }))
        return () => void patchJson(bytes, { model: '"p"' })
      },
    },
    {
      what: 'an event of many lines that is patched',
      size: 20_000,
      prepare: (size) => {
        const block = `data: {"response":{\n${'data:\n'.repeat(size)}data: "model":"x"}}`
        return () => void patchEvent(block, { id: '"x"' })
      },
    },
    ...[chatSealing, messagesSealing].map((sealing, index) => ({
      what: `marks of what is sealed, ${index === 0 ? 'responses' : 'messages'}`,
      size: 3_000,
      prepare: (size: number) => {
        const item =
          index === 0
            ? { type: 'reasoning', encrypted_content: 'x"\\' }
            : { type: 'thinking', thinking: '', signature: 'x"\\' }
        const data = Array.from({ length: size }, () => item)
        const text = JSON.stringify(data)
        return () => {
          markText(sealing, text, data, 'someone')
          unmarkMember(sealing, text, 'someone')
        }
      },
    })),
    ...(['[]', '{"a":1,"type":"thinking"}', '"signature"'] as const).map((value) => ({
      what: `the search for what is sealed among many ${value}`,
      size: 20_000,
      prepare: (size: number) => {
        const text = `[${Array.from({ length: size }, () => value).join()}]`
        const [bytes, parsed] = [Buffer.from(text), JSON.parse(text) as Json]
        return () => void holdsEncrypted(messagesSealing, parsed, bytes)
      },
    })),
    {
      what: 'a refusal’s message',
      size: 50_000,
      prepare: (size) => {
        const message = 'exceeds the maximum input token count exceeds context '.repeat(size / 50)
        const bodies = [
          { error: { type: 'invalid_request_error', code: 400, status: 'INVALID_ARGUMENT', message } },
          { error: { type: 'BadRequestError', code: 400, message } },
          { error: { message: ' '.repeat(size) } },
        ].map((body) => JSON.stringify(body))
        return () => {
          for (const body of bodies) for (const status of [400, 429, 500]) classifyRejection({ status }, body)
        }
      },
    },
  ]
}

/** Text of models, as fusion reads it. */
function modelText(): LinearRow[] {
  const texts: readonly (readonly [string, string, (text: string) => unknown])[] = [
    ['the object in a reply of braces', '{', findJsonObject],
    ['the object in a reply of commas and blanks', '{},   ', findJsonObject],
    ['the object in a reply of quotes', '{"\\', findJsonObject],
    ['the pieces of a text without breaks', 'x', splitIntoPieces],
    ['the pieces of a text of breaks', '\n', splitIntoPieces],
    ['the cut of a text', 'x\n', (text) => shortenMiddle(text, 9_000)],
    ['the words of a text', 'a1,', (text) => vectorize([text, text])],
  ]
  return texts.map(([what, unit, read]) => ({
    what,
    size: 30_000,
    prepare: (size) => {
      const text = unit.repeat(size)
      return () => void read(text)
    },
  }))
}

/** Text of clients before the body. */
function requestHeaders(): LinearRow[] {
  const gate = new EdgeGate(
    () => {},
    () => 0,
  )
  const passGate = (userAgent: string): void => {
    try {
      gate.pass(userAgent, 'req_1')
    } catch {
      // Rejected, as expected.
    }
  }
  const asRequest = (request: Pick<IncomingMessage, 'headers'> & { url?: string }): IncomingMessage =>
    request as IncomingMessage
  const readers: readonly (readonly [string, string, (text: string) => unknown])[] = [
    ['cookies without a name', '; ', (text) => readSessionToken(new Headers({ cookie: text }), 'account', false)],
    [
      'cookies with the same prefix as ours',
      'svc_session;',
      (text) => readSessionToken(new Headers({ cookie: text }), 'account', true),
    ],
    ['a User-Agent of blanks', ' ', (text) => passGate(`${text}x`)],
    ['a User-Agent that begins like a browser', 'mozilla/5.0 ', passGate],
    ['forwarding addresses', ', ', (text) => clientAddress('127.0.0.1', text, 2)],
    ['a query string', '&a=%20', (text) => pathOf(asRequest({ headers: {}, url: `/v1/models?${text}` }))],
    ['slashes of a path', '/', (text) => pathOf(asRequest({ headers: {}, url: text }))],
    ['a stated time', '1', (text) => parseRequestHeaders(asRequest({ headers: { 'x-stainless-timeout': text } }))],
  ]
  return readers.map(([what, unit, read]) => ({
    what,
    size: 30_000,
    prepare: (size) => {
      const text = unit.repeat(size)
      return () => void read(text)
    },
  }))
}

/**
 * Compressed bodies in small reads: one that decompresses to the size limit, and one that never decompresses to any
 * bytes.
 */
function compressedBodies(): LinearRow[] {
  const clock = { nowMs: () => 0, monotonicMs: () => 0, after: () => ({ cancel() {} }) }
  const read = async (encoding: string, bytes: Buffer): Promise<void> => {
    const pieces = Array.from({ length: Math.ceil(bytes.length / 512) }, (_, at) =>
      bytes.subarray(at * 512, at * 512 + 512),
    )
    const request = Object.assign(Readable.from(pieces, { objectMode: false }), {
      headers: { 'content-encoding': encoding },
      complete: true,
    }) as unknown as IncomingMessage
    const limits = { maxBytes: 64 * 1024 * 1024, timeoutMs: 60_000, clock }
    // Rejected, as expected for some of these.
    await readJsonBody(request, limits, { spend() {} }).catch(() => {})
  }
  const encoders: readonly (readonly [string, (text: string) => Buffer])[] = [
    ['gzip', (text) => gzipSync(text)],
    ['deflate', (text) => deflateSync(text)],
    ['br', (text) => brotliCompressSync(text, { params: { [constants.BROTLI_PARAM_QUALITY]: 4 } })],
    ['zstd', (text) => zstdCompressSync(text)],
  ]
  const texts = {
    'a string of backslashes': (size: number) => `{"a":"${'\\'.repeat(2 * size)}"}`,
    'noise and blanks by turns': (size: number) =>
      `{"a":[${Array.from({ length: size / 64 }, (_, index) => `${Math.sin(index)}${' '.repeat(48)}`).join(',')}]}`,
  }
  const empty = Buffer.from([0x00, 0x00, 0x00, 0xff, 0xff])
  return [
    ...encoders.flatMap(([encoding, encode]) =>
      Object.entries(texts).map(([what, text]) => ({
        what: `a body in ${encoding}: ${what}`,
        size: 200_000,
        prepare: (size: number) => {
          const bytes = encode(text(size))
          return () => read(encoding, bytes)
        },
      })),
    ),
    {
      what: 'a body in deflate: empty blocks without end',
      size: 20_000,
      prepare: (size) => {
        const bytes = Buffer.concat([Buffer.from([0x78, 0x9c]), ...Array.from({ length: size }, () => empty)])
        return () => read('deflate', bytes)
      },
    },
  ]
}
