import type { ServerResponse } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { formatById, relayById } from '../../src/formats/formats.ts'
import { RelayLane } from '../../src/gateway/lanes/relay-lane.ts'
import { Service } from '../service.ts'
import {
  eventsOf,
  expectBrokenChat,
  expectBrokenMessages,
  expectBrokenResponses,
  jsonUpToDone,
  recordOf,
} from './event-stream.ts'
import { RawConnection, writePost } from './raw-client.ts'
import {
  settingsFor,
  openEventStream,
  sendJson,
  startScriptedUpstream,
  type ScriptedUpstream,
} from './scripted-upstream.ts'

let upstream: ScriptedUpstream
let service: Service

beforeEach(async () => {
  upstream = await startScriptedUpstream()
})
afterEach(async () => {
  await service.stop()
  await upstream.close()
})

async function start(
  format: string,
  timeouts?: Readonly<Record<string, string>>,
  more: Record<string, unknown> = {},
): Promise<void> {
  service = await Service.start({ formats: [], settings: { ...settingsFor(upstream, format, timeouts), ...more } })
}

function stream(text: string): (request: unknown, response: ServerResponse) => void {
  return (_request, response) => {
    openEventStream(response)
    response.end(text)
  }
}

const profile = 'svc-router/frontier'
const renamed = (text: string): string => text.replaceAll('"upstream-model"', `"${profile}"`)

/** Removes issuers' marks from encrypted reasoning, which tests/spec/sealed-reasoning.test.ts covers. */
const withoutMark = (text: string): string => text.replace(/"svcr1\.[\w-]{12}\./g, '"')

const oddChat =
  '{"id":"x-1",\n "object" : "chat.completion","created":1,"model":"upstream-model","vendor_field":{"deep":[1,2.50,"ü\\u00fc"]},' +
  '"choices":[{"index":0,"message":{"role":"assistant","content":"Grüße ☃","audio":{"id":"a"},"annotations":[]},"logprobs":{"content":[]},"finish_reason":"stop"},' +
  '{"index":1,"message":{"role":"assistant","content":"zwei"},"finish_reason":"length"}],"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3},"z":1e400 }'

const oddResponse =
  '{"id":"resp_x","object":"response","created_at":1,"status":"completed","model":"upstream-model","vendor":{"a":[true,null]},' +
  '"output":[{"id":"rs","type":"reasoning","summary":[],"encrypted_content":"gAAA=="},{"id":"msg","type":"message","role":"assistant","status":"completed",' +
  '"content":[{"type":"output_text","text":"Grüße ☃","annotations":[{"type":"url_citation","url":"https://example.com","title":"t","start_index":0,"end_index":2}],"logprobs":[]}]}],' +
  '"usage":{"input_tokens":1,"output_tokens":2,"total_tokens":3}}'

const chatEvents = [
  '{"id":"c-1","object":"chat.completion.chunk","created":1,"model":"upstream-model","system_fingerprint":"fp","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}],"obfuscation":"x"}',
  '{"id":"c-1","model":"upstream-model","choices":[{"index":0,"delta":{"content":"Grüße ☃ "},"logprobs":{"content":[{"token":"G","logprob":-0.1,"bytes":[71]}]},"finish_reason":null}],"vendor":{"odd":[1.0]}}',
  '{"id":"c-1","model":"upstream-model","choices":[{"index":0,"delta":{"content":"\\"model\\":\\"upstream-model\\" \\r\\n"},"finish_reason":null}]}',
  '{"id":"c-1","model":"upstream-model","choices":[{"index":0,"delta":{"content":"more"},"finish_reason":null}]}',
  '{"id":"c-1","model":"upstream-model","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":null}',
  '{"id":"c-1","model":"upstream-model","choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3,"vendor_tokens":9}}',
  '[DONE]',
]

const responsesEvents = [
  '{"type":"response.created","sequence_number":0,"response":{"id":"resp_x","object":"response","status":"in_progress","model":"upstream-model","output":[]}}',
  '{"type":"response.output_item.added","sequence_number":1,"output_index":0,"item":{"id":"m","type":"message","role":"assistant","status":"in_progress","content":[]},"vendor":1}',
  '{"type":"response.output_text.delta","sequence_number":2,"item_id":"m","output_index":0,"content_index":0,"delta":"Grüße ☃","logprobs":[],"obfuscation":"abc"}',
  '{"type":"response.vendor.unheard_of","sequence_number":3,"anything":{"x":[1]}}',
  '{"type":"response.output_text.delta","sequence_number":4,"item_id":"m","output_index":0,"content_index":0,"delta":" more","logprobs":[]}',
  '{"type":"response.completed","sequence_number":5,"response":{"id":"resp_x","object":"response","status":"completed","model":"upstream-model","output":[{"id":"m","type":"message","role":"assistant","status":"completed","content":[{"type":"output_text","text":"Grüße ☃ more","annotations":[]}]}],"usage":{"input_tokens":1,"output_tokens":2,"total_tokens":3}}}',
]

const oddMessage =
  '{"id":"msg_x","type":"message","role":"assistant", "model" : "upstream-model","container":null,"content":[{"type":"thinking","thinking":"hm","signature":"EqQB=="},' +
  '{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"x"}},{"type":"text","text":"Grüße ☃","citations":[{"type":"char_location","cited_text":"G","document_index":0}]}],' +
  '"stop_reason":"pause_turn","stop_sequence":null,"usage":{"input_tokens":1,"cache_creation":{"ephemeral_5m_input_tokens":7},"cache_creation_input_tokens":7,"output_tokens":2},"vendor":[1.50]}'

const messagesEvents = [
  '{"type":"message_start","message":{"id":"msg_x","type":"message","role":"assistant","model":"upstream-model","content":[],"stop_reason":null,"usage":{"input_tokens":1,"output_tokens":1}}}',
  '{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""},"vendor":1}',
  '{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Grüße ☃ "}}',
  '{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"\\"model\\":\\"upstream-model\\" more"}}',
  '{"type":"ping"}',
  '{"type":"vendor_unheard_of","anything":{"x":[1]}}',
  '{"type":"content_block_stop","index":0}',
  '{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":2},"context_management":{"applied_edits":[]}}',
  '{"type":"message_stop"}',
]

const chatBlocks = chatEvents.map((data) => `data: ${data}\n\n`).join('')
const named = (events: readonly string[]): string =>
  events.map((data) => `event: ${(JSON.parse(data) as { type: string }).type}\ndata: ${data}\n\n`).join('')
const responsesBlocks = named(responsesEvents)
const messagesBlocks = named(messagesEvents)

const formats = [
  ['openai-chat', '/chat/completions', { messages: [{ role: 'user', content: 'Hi' }] }, oddChat, chatBlocks],
  ['openai-responses', '/responses', { input: 'Hi', store: false }, oddResponse, responsesBlocks],
  [
    'anthropic-messages',
    '/messages',
    { max_tokens: 99, messages: [{ role: 'user', content: 'Hi' }] },
    oddMessage,
    messagesBlocks,
  ],
] as const

/** What follows the backend's last event in a relayed stream. */
function endingOf(format: string, blocks: string): string {
  return format === 'anthropic-messages' || blocks.endsWith('[DONE]\n\n') ? '' : 'data: [DONE]\n\n'
}

function expectBroken(format: string, text: string): void {
  if (format === 'openai-chat') expectBrokenChat(text)
  else if (format === 'openai-responses') expectBrokenResponses(text)
  else expectBrokenMessages(text)
}

const faults: Readonly<Record<string, string>> = {
  'openai-chat': '{"error":{"message":"m","code":"server_error"}}',
  'openai-responses': '{"type":"error","sequence_number":9,"code":"server_error","message":"m"}',
  'anthropic-messages': '{"type":"error","error":{"type":"overloaded_error","message":"m"}}',
}

describe.each(formats)('%s, relayed', (format, path, body, whole, blocks) => {
  const expected = renamed(blocks) + endingOf(format, blocks)
  const askStream = (extra: object = {}): Promise<Response> =>
    service.post(path, { model: profile, stream: true, stream_options: { include_usage: true }, ...body, ...extra })

  test("a non-streaming answer is the backend's byte for byte, except for the model", async () => {
    await start(format)
    upstream.answer = (_request, response) => sendJson(response, whole)
    const response = await service.post(path, { model: profile, ...body })
    expect(response.status).toBe(200)
    expect(withoutMark(await response.text())).toBe(renamed(whole))
  })

  test("a stream is the backend's byte for byte, except for the model", async () => {
    await start(format)
    upstream.answer = stream(blocks)
    expect(await (await askStream()).text()).toBe(expected)
  })

  test('unknown request fields reach the backend byte for byte', async () => {
    await start(format)
    upstream.answer = (_request, response) => sendJson(response, whole)
    const sent = format === 'openai-chat' ? { ...body, stream: false } : body
    const text = `{"vendor_option" : {"deep":[1.50, "ü"]},"model":"${profile}",${JSON.stringify(sent).slice(1, -1)}, "logit_bias":{"1":-100} }`
    expect((await service.post(path, text)).status).toBe(200)
    expect(upstream.bodies).toEqual([text.replace(`"${profile}"`, '"upstream-model"')])
  })

  test.each([
    ['lines that end in CR LF', (text: string) => text.replaceAll('\n', '\r\n')],
    ['lines that end in CR', (text: string) => text.replaceAll('\n', '\r')],
    ['comments between the events', (text: string) => `: hello\n\n${text.replaceAll('\n\n', '\n\n: ping\n\n')}`],
  ])('%s change nothing for the client', async (_name, change) => {
    await start(format)
    upstream.answer = stream(change(blocks))
    expect(eventsOf(await (await askStream()).text())).toEqual(eventsOf(expected))
  })

  test('a stream that arrives byte by byte is the same stream', async () => {
    await start(format)
    upstream.answer = async (_request, response) => {
      openEventStream(response)
      const bytes = Buffer.from(blocks)
      for (let at = 0; at < bytes.length; at++) {
        response.write(bytes.subarray(at, at + 1))
        await new Promise((resolve) => setImmediate(resolve))
      }
      response.end()
    }
    expect(await (await askStream()).text()).toBe(expected)
  })

  test('a stream split at any byte gives the same result', async () => {
    await start(format)
    const conversation = formatById(format).readRequest({
      model: profile,
      stream: true,
      stream_options: { include_usage: true },
      ...body,
    })
    const context = {
      conversation,
      requestId: 'req_1',
      createdAt: 1,
      nowSeconds: () => 1,
      isStored: false,
      mintId: () => 'x',
    }
    const bytes = Buffer.from(blocks)
    for (const text of [bytes, Buffer.from(blocks.replaceAll('\n', '\r\n'))]) {
      for (let at = 0; at <= text.length; at++) {
        const lane = new RelayLane(relayById(format), formatById(format).readAnswer(), context, true, 'someone')
        const out = lane.push(text.subarray(0, at)) + lane.push(text.subarray(at)) + lane.end()
        expect(Buffer.from(out, 'latin1').toString('utf8'), `split at ${at}`).toBe(expected)
      }
    }
  })

  test('comments do not count as activity: a stream of comments alone is abandoned at its idle limit', async () => {
    await start(format, { first_content: '2s', idle: '500ms' })
    upstream.answer = async (_request, response) => {
      openEventStream(response)
      response.write(
        blocks
          .split('\n\n')
          .slice(0, 3)
          .map((block) => `${block}\n\n`)
          .join(''),
      )
      while (!response.destroyed) {
        await delay(50)
        response.write(': ping\n\n')
      }
    }
    const startedMs = performance.now()
    const text = await (await askStream()).text()
    expectBroken(format, text)
    expect(performance.now() - startedMs).toBeLessThan(2_000)
  })

  test('content that precedes an error in the same read is delivered before the failure', async () => {
    await start(format)
    const [opening, content] = [blocks.split('\n\n').slice(0, 3), blocks.split('\n\n')[3]!]
    upstream.answer = async (_request, response) => {
      openEventStream(response)
      response.write(opening.map((block) => `${block}\n\n`).join(''))
      await delay(60)
      response.end(`${content}\n\ndata: ${faults[format]!}\n\n`)
    }
    const response = await askStream()
    const text = await response.text()
    expect(text).toContain(renamed(content))
    expectBroken(format, text)
    expect(await recordOf(service, response.headers.get('x-request-id'))).toMatchObject({
      charged: 1,
      errorCode: 'upstream_broken',
    })
  })

  test('an error after the end of the answer, in the same read, does not affect the answer', async () => {
    await start(format)
    upstream.answer = async (_request, response) => {
      openEventStream(response)
      const all = blocks
        .replace('data: [DONE]\n\n', '')
        .split('\n\n')
        .slice(0, -1)
        .map((block) => `${block}\n\n`)
      response.write(all.slice(0, 3).join(''))
      await delay(60)
      response.end(`${all.slice(3).join('')}data: {"error":{"message":"m","code":"server_error"}}\n\n`)
    }
    expect(await (await askStream()).text()).toBe(expected)
  })
})

describe('a relayed answer that is stored', () => {
  /** The text as the backend sent it, except for the model, the ID, and `store`. */
  const stored = (text: string, id: string): string =>
    renamed(text)
      .replaceAll('"resp_x"', `"${id}"`)
      .replace('"output":[]}', '"output":[],"store":true}')
      .replace('"total_tokens":3}}', '"total_tokens":3},"store":true}')

  test("everything else is byte for byte the backend's, streamed or not", async () => {
    await start('openai-responses')
    upstream.answer = stream(responsesBlocks)
    const streamed = await (await service.responses({ stream: true })).text()
    const id = /resp_\w{24}/.exec(streamed)![0]
    expect(streamed).toBe(`${stored(responsesBlocks, id)}data: [DONE]\n\n`)
    upstream.answer = (_request, response) => sendJson(response, oddResponse)
    const whole = await (await service.responses()).text()
    expect(withoutMark(whole)).toBe(stored(oddResponse, /resp_\w{24}/.exec(whole)![0]))
  })

  test('byte-by-byte arrival changes nothing, and the stored answer is the one that was sent', async () => {
    await start('openai-responses')
    upstream.answer = async (_request, response) => {
      openEventStream(response)
      for (const byte of Buffer.from(responsesBlocks)) {
        response.write(Buffer.of(byte))
        await new Promise((resolve) => setImmediate(resolve))
      }
      response.end()
    }
    const streamed = await (await service.responses({ stream: true })).text()
    const id = /resp_\w{24}/.exec(streamed)![0]
    expect(streamed).toBe(`${stored(responsesBlocks, id)}data: [DONE]\n\n`)
    const kept = await fetch(`${service.baseUrl}/responses/${id}`, {
      headers: { authorization: `Bearer ${service.key}`, 'user-agent': 'svc-router-tests/1.0' },
    })
    expect(jsonUpToDone(streamed).at(-1)).toMatchObject({ response: await kept.json() })
  })

  test('the answer keeps its ID and its numbers if its stream needed keep-alives', async () => {
    await start('openai-responses', undefined, { keep_alive: '100ms' })
    const [first = '', ...rest] = responsesBlocks.split(/(?<=\n\n)/)
    upstream.answer = async (_request, response) => {
      openEventStream(response)
      response.write(first + rest.slice(0, 2).join(''))
      await delay(350)
      response.end(rest.slice(2).join(''))
    }
    const events = jsonUpToDone(await (await service.responses({ stream: true })).text())
    const ids = new Set(events.flatMap(({ response }) => (response as { id: string } | undefined)?.id ?? []))
    expect(ids.size).toBe(1)
    expect([...ids][0]).toMatch(/^resp_\w{24}$/)
    expect(events.filter(({ type }) => type === 'keepalive').length).toBeGreaterThan(0)
    expect(events.map((event) => event['sequence_number'])).toEqual(events.map((_, index) => index))
  })
})

test('usage that only svc-router requested is recorded and not shown to the client', async () => {
  await start('openai-chat')
  upstream.answer = stream(chatBlocks)
  const response = await service.chat({ stream: true })
  const text = await response.text()
  expect(text).toBe(
    renamed(
      chatEvents
        .filter((data) => !data.includes('vendor_tokens'))
        .map((data) => `data: ${data}\n\n`)
        .join(''),
    ),
  )
  expect(JSON.parse(upstream.bodies[0]!)).toMatchObject({ stream_options: { include_usage: true } })
  expect(await recordOf(service, response.headers.get('x-request-id'))).toMatchObject({
    usage: { inputTokens: 1, outputTokens: 2, source: 'counted' },
  })
})

test('sequential requests on one connection are answered in order and charged once each', async () => {
  await start('openai-chat')
  upstream.answer = async (_request, response) => {
    const { messages } = JSON.parse(upstream.bodies.at(-1)!) as { messages: { content: string }[] }
    await delay(messages[0]!.content === 'slow' ? 150 : 0)
    sendJson(response, oddChat.replace('x-1', messages[0]!.content))
  }
  const connection = new RawConnection(Number(new URL(service.baseUrl).port))
  const post = (content: string, headers = ''): string =>
    writePost('/chat/completions', service.key, { model: profile, messages: [{ role: 'user', content }] }, headers)
  const bytes = await connection.read(post('slow') + post('quick') + post('last', 'connection: close\r\n'))
  expect(bytes.match(/HTTP\/1\.1 200/g)).toHaveLength(3)
  expect(bytes.match(/"id":"(slow|quick|last)"/g)).toEqual(['"id":"slow"', '"id":"quick"', '"id":"last"'])
  expect(bytes.match(/x-quota-used: \d+/gi)?.map((line) => line.slice(-1))).toEqual(['1', '2', '3'])
})

test('a stream without its closing event is broken, even if its connection closes cleanly', async () => {
  await start('openai-responses')
  upstream.answer = stream(responsesBlocks.split('event: response.completed')[0]!)
  const text = await (await service.responses({ stream: true })).text()
  expectBrokenResponses(text)
  expect(jsonUpToDone(text).at(-1)?.sequence_number).toBe(6)
})
