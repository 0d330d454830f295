import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { ConversationFormatId } from '../../src/domain/format-id.ts'
import type { JsonObject } from '../../src/domain/json.ts'
import type { Dialect } from '../../src/formats/format.ts'
import { formatById, relayById } from '../../src/formats/formats.ts'
import { JsonScan } from '../../src/formats/json-scan.ts'
import { RelayLane } from '../../src/gateway/lanes/relay-lane.ts'
import { WholeLane } from '../../src/gateway/lanes/whole-lane.ts'
import type { Backend, ModelRequest } from '../../src/gateway/ports.ts'
import { writeBody } from '../../src/gateway/request/backend-request.ts'
import { LearnedLimits } from '../../src/gateway/routing/learned-limits.ts'
import { systemClock } from '../../src/runtime/clock.ts'
import { contextOf, recordedRequests } from '../formats/exchange.ts'
import { clientSides } from './client-sides.ts'
import { recordings, streamsOf, wholesOf } from './recordings.ts'

const clients = (Object.keys(clientSides) as ConversationFormatId[]).filter((id) => id in recordings)
const model = 'svc-router/frontier'

/** JSON that parsing and serializing would change. */
const oddTexts = [
  '1.50',
  '1e400',
  '-0',
  '12345678901234567890',
  '"\\u00fc☃\\/"',
  '[ 1 ,\n null]',
  '{ "deep" : {"a":[{}]} }',
  '"[DONE]"',
  '"\\"model\\":\\"x\\""',
]
const oddText = fc.constantFrom(...oddTexts)
/** Where to insert unknown members: the number of objects to skip before each. */
const places = fc.array(fc.record({ skip: fc.nat(12), text: oddText }), { minLength: 1, maxLength: 6 })

/** The same JSON text with unknown members, each directly after the opening brace of an object. */
function withUnknown(json: string, added: readonly { readonly skip: number; readonly text: string }[]): string {
  const openings = [...objectOpenings(json)]
  let out = json
  const chosen = new Map<number, string>()
  let at = 0
  for (const [index, { skip, text }] of added.entries()) {
    at = (at + skip) % openings.length
    chosen.set(openings[at]!, `${chosen.get(openings[at]!) ?? ''}"unknown_${index}":${text},`)
  }
  for (const [place, text] of [...chosen].sort(([one], [other]) => other - one)) {
    const isEmpty = out[place + 1] === '}'
    out = out.slice(0, place + 1) + (isEmpty ? text.slice(0, -1) : text) + out.slice(place + 1)
  }
  return out
}

/** The offsets of the opening braces of objects. */
function* objectOpenings(json: string): Generator<number> {
  for (const { 0: token, index } of json.matchAll(/"(?:[^"\\]|\\.)*"|\{/g)) if (token === '{') yield index
}

const dialect: Dialect = { maxTokensField: 'max_tokens', developerRole: true, streamUsage: true, refusedFields: [] }

function backendOf(format: ConversationFormatId): Backend {
  const unasked = (): never => {
    throw new Error('this backend is never called')
  }
  const timeouts = { connectMs: 1, headersMs: 1, firstContentMs: 1, wholeAnswerMs: 1, idleMs: 1, totalMs: 1 }
  const about = { id: 'b', failureDomain: 'b', issuer: 'someone', model: 'backend-model', simulated: false }
  return { ...about, format, timeouts, dialect, call: unasked }
}

function requestOf(format: ConversationFormatId, json: string): ModelRequest {
  const bytes = Buffer.from(json)
  const scan = new JsonScan({ maxDepth: 128, maxTokens: 300_000, maxMembers: 60_000 })
  scan.push(bytes)
  const body = JSON.parse(json) as JsonObject
  return { id: 'req_1', format, bytes, members: scan.members(bytes), body, timeoutMs: undefined }
}

describe.each(clients)('%s, relayed', (id) => {
  const format = formatById(id)
  const bodies: readonly JsonObject[] = [
    clientSides[id].ask('hi ☃', true),
    clientSides[id].ask('hi', false),
    ...recordedRequests()
      .filter(({ path, body }) => body !== undefined && path.split('?')[0] === `/v1${format.path}`)
      // Encrypted reasoning without an issuer's mark would be removed: tests/spec/sealed-reasoning.test.ts.
      .filter(({ body }) => !JSON.stringify(body).includes('"encrypted_content":"'))
      // Our own tool is not sent to providers.
      .filter(({ body }) => !JSON.stringify(body).includes('svc-router:fusion'))
      // Items that refer to stored data are not sent to providers: tests/spec/stored-responses.test.ts.
      .filter(({ body }) => !JSON.stringify(body).includes('"type":"reasoning"'))
      .map(({ body }) => body as JsonObject),
  ]

  test('unknown members anywhere in a request reach the backend byte for byte', () => {
    expect(bodies.length).toBeGreaterThan(2)
    fc.assert(
      fc.property(fc.constantFrom(...bodies), places, (body, added) => {
        const whole = {
          ...body,
          model,
          ...(id === 'openai-responses' ? { store: false } : body['stream'] === true && usageAsked),
          ...(id === 'openai-chat' && { stream: body['stream'] === true }),
        }
        const json = withUnknown(JSON.stringify(whole), added)
        const request = requestOf(id, json)
        const conversation = format.readRequest(request.body)
        const parts = { formats: formatById, relays: relayById, learned: new LearnedLimits(systemClock()) }
        // Claude Code's report about itself reaches no other model (contract 44.9).
        const backend = { ...backendOf(id), model: 'claude-opus-5' }
        const written = writeBody(backend, request, conversation, parts)
        const expected = json.replace(`"model":"${model}"`, '"model":"claude-opus-5"')
        expect(Buffer.from(written as Uint8Array).toString()).toBe(expected)
      }),
      { numRuns: 300 },
    )
  })

  test('unknown members anywhere in a streamed answer reach the client byte for byte', () => {
    const streams = streamsOf(id).map(({ text }) => text)
    fc.assert(
      fc.property(fc.constantFrom(...streams), fc.infiniteStream(places), fc.nat(), (text, added, split) => {
        const events = fromBackend(text)
          .split(/(?<=\n\n)/)
          .map((event) => {
            const [head, json = ''] = event.split(/(?<=data: )/)
            return json.startsWith('{') ? `${head}${withUnknown(json, oneLine(added.next().value))}` : event
          })
        const sent = Buffer.from(events.join(''))
        const conversation = format.readRequest({ ...clientSides[id].ask('hi', true) })
        const lane = new RelayLane(relayById(id), format.readAnswer(), contextOf(conversation), true, 'someone')
        const at = split % sent.length
        const out = lane.push(sent.subarray(0, at)) + lane.push(sent.subarray(at)) + lane.end()
        const received = withoutMarks(Buffer.from(out, 'latin1').toString())
        const expected = events.join('').replaceAll('"model":"backend-model"', `"model":"${model}"`)
        expect(withoutDone(received)).toBe(withoutDone(expected))
      }),
      { numRuns: 200 },
    )
  })

  test('unknown members anywhere in a non-streaming answer reach the client byte for byte', () => {
    const answers = wholesOf(id).map(({ text }) => JSON.stringify(JSON.parse(text)))
    fc.assert(
      fc.property(fc.constantFrom(...answers), places, (answer, added) => {
        const sent = withUnknown(fromBackend(answer), added)
        const context = contextOf(format.readRequest(clientSides[id].ask('hi', false)))
        const backend = backendOf(id)
        const lane = new WholeLane({ context, client: format, backend, backendFormat: format, relay: relayById(id) })
        lane.push(Buffer.from(sent))
        const expected = sent.replace('"model":"backend-model"', `"model":"${model}"`)
        const end = lane.end()
        const written = typeof end === 'string' ? Buffer.from(end, lane.encoding) : end
        expect(withoutMarks(written.toString())).toBe(expected)
      }),
      { numRuns: 300 },
    )
  })
})

const usageAsked = { stream_options: { include_usage: true } }

/** Members for an event, without line feeds. */
function oneLine<Added extends { readonly text: string }>(added: readonly Added[]): Added[] {
  return added.map((one) => ({ ...one, text: one.text.replaceAll('\n', ' ') }))
}

function withoutDone(text: string): string {
  return text.replace(/data: \[DONE\]\n\n$/, '')
}

/** The text as the backend would write it for a response that is not stored. */
function fromBackend(text: string): string {
  return text.replaceAll(/"model":"[^"]*"/g, '"model":"backend-model"').replaceAll('"store":true', '"store":false')
}

function withoutMarks(text: string): string {
  return text.replaceAll('"svcr1.someone.', '"')
}
