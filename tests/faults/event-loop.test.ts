import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { stringify } from 'yaml'
import { casesOf } from '../long-run.ts'
import { addAccounts } from './add-accounts.ts'
import { slowdown } from './machine-speed.ts'
import type { Held } from './measured-service.ts'

/** No request may block the event loop for longer (contract 29.7). */
const mostHeldMs = 50
const startLimitMs = 100_000
/** The best of this many measurements counts, to exclude other processes and garbage of earlier requests. */
const tries = 10
/** The largest body that the default configuration accepts, less some bytes around the content. */
const room = 5 * 1024 * 1024 - 400

const filled = (unit: string, bytes = room): string => `"${unit.repeat(Math.floor(bytes / Buffer.byteLength(unit)))}"`
const saying = (content: string): string => `"messages":[{"role":"user","content":${content}}]`
const beside = (field: string): string => `${field},"messages":[{"role":"user","content":"Hello"}]`
const list = (count: number, item: (index: number) => string): string =>
  Array.from({ length: count }, (_, index) => item(index)).join(',')

/** Worst-case bodies: the text after the model, and the expected status. */
const bodies: readonly (readonly [name: string, status: number, rest: () => string])[] = [
  ['a question of one word, for comparison', 200, () => saying('"Hello"')],
  [
    'an image in base64',
    200,
    () =>
      saying(
        `[{"type":"image_url","image_url":{"url":${filled('A', room - 100).replace('"', '"data:image/png;base64,')}}}]`,
      ),
  ],
  ['escaped quotes', 200, () => saying(filled('\\"'))],
  ['escaped quotes and one wide character', 200, () => saying(`"漢${filled('\\"', room - 10).slice(1)}`)],
  ['backslashes', 200, () => saying(filled('\\\\'))],
  ['letters and one wide character', 200, () => saying(`"漢${filled('a', room - 10).slice(1)}`)],
  ['wide characters', 200, () => saying(filled('漢'))],
  ['pairs of surrogates', 200, () => saying(filled('😀'))],
  ['halves of surrogate pairs', 200, () => saying(filled(String.raw`\ud800`))],
  ['escaped control characters', 200, () => saying(filled(String.raw`\u0001`))],
  ['one number', 200, () => beside(`"x":${'1'.repeat(room - 100)}`)],
  ['spaces', 200, () => beside(`"x":1${' '.repeat(room - 100)}`)],
  ['nearly 300,000 pieces', 200, () => beside(`"x":[${list(298_000, () => '1')}]`)],
  ['nearly 300,000 fractions', 200, () => beside(`"x":[${list(230_000, () => '1.2345678901234e-300')}]`)],
  [
    '60,000 members of different names',
    400,
    () => beside(`"x":[${list(6, (part) => `{${list(9_900, (index) => `"k${part}x${index}":1`)}}`)}]`),
  ],
  [
    '20,000 members of different names',
    200,
    () => beside(`"x":[${list(990, (part) => `{${list(20, (index) => `"k${part}x${index}":1`)}}`)}]`),
  ],
  [
    '60,000 members with names in different orders',
    400,
    () =>
      beside(
        `"x":[${list(5_900, (part) => `{${list(10, (index) => `"k${(part * 7 + index * (1 + (part % 96))) % 97}":1`)}}`)}]`,
      ),
  ],
  [
    '60,000 members whose names are numbers',
    200,
    () => beside(`"x":[${list(6, () => `{${list(9_900, (index) => `"${4_000_000_000 - index * 70_000}":1`)}}`)}]`),
  ],
  ['29,000 messages', 200, () => `"messages":[${list(29_000, () => '{"role":"user","content":"Hi"}')}]`],
  [
    '9,000 tools',
    200,
    () =>
      beside(
        `"tools":[${list(9_000, (index) => `{"type":"function","function":{"name":"t${index}","parameters":{"p":1}}}`)}]`,
      ),
  ],
  ['as many brackets as there is room for', 400, () => saying(`[${list(Math.floor(room / 3) - 10, () => '[]')}]`)],
  ['10,000 brackets within each other', 400, () => beside(`"x":${'['.repeat(10_000)}${']'.repeat(10_000)}`)],
  ['150,000 names in one object', 400, () => beside(`"x":{${list(150_000, (index) => `"k${index}":1`)}}`)],
  ['150,000 fields', 400, () => beside(list(150_000, (index) => `"k${index}":1`))],
  ['64 MiB', 413, () => saying(filled('a', 64 * 1024 * 1024))],
]

/** No answer may hold it for longer (contract 29.14). */
const mostHeldByAnswerMs = 150
const mebibyte = 1024 * 1024
const chatSaying = (text: string): string =>
  `{"id":"c","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":${text}},"finish_reason":"stop"}]}`
const responseSaying = (text: string): string =>
  `{"id":"r","object":"response","model":"m","status":"completed","output":[{"type":"message","id":"i","role":"assistant","content":[{"type":"output_text","text":${text}}]}]}`
const vector = list(1_600, (place) => `-0.0123456${place % 10}89012345`)
const vectors = (bytes: number): string =>
  `{"object":"list","model":"m","data":[${list(Math.floor(bytes / 32_020), (index) => `{"object":"embedding","index":${index % 9_999},"embedding":[${vector}]}`)}]}`
const names = (count: number): string =>
  `[${list(count, (part) => `{${list(20, (index) => `"k${part}x${index}":0`)}}`)}]`
const besideAnswer = (json: string): string => chatSaying('"Hi"').replace(/\}$/, `,"extra":${json}}`)
type Text = readonly [name: string, text: (bytes: number) => string]
/** Letters take the least time in every lane. The other two differ in which lanes they are the slowest. */
const letters: Text = ['letters', (bytes) => filled('a', bytes)]
const slow: readonly Text[] = [
  ['escaped quotes', (bytes) => filled('\\"', bytes)],
  ['line feeds and one wide character', (bytes) => `"漢${filled('\\n', bytes).slice(1)}`],
]
const texts = casesOf({ sample: slow, all: [letters, ...slow] })

/** The largest answers: how they are requested, and what the provider sends. */
const answers: readonly (readonly [name: string, path: string, model: string, more: string, body: () => string])[] = [
  ...texts.flatMap(([name, text]) => [
    [`${name}, relayed`, 'chat/completions', 'big-chat', '', () => chatSaying(text(31 * mebibyte))] as const,
    [`${name}, not stored`, 'responses', 'big', ',"store":false', () => responseSaying(text(31 * mebibyte))] as const,
    [`${name}, too large to store`, 'responses', 'big', '', () => responseSaying(text(31 * mebibyte))] as const,
    [`${name}, stored`, 'responses', 'big', '', () => responseSaying(text(4.5 * mebibyte))] as const,
    [`${name}, translated`, 'responses', 'big-chat', '', () => chatSaying(text(15 * mebibyte))] as const,
  ]),
  ['vectors', 'embeddings', 'big-vectors', '', () => vectors(31 * mebibyte)],
  ['19,000 names', 'chat/completions', 'big-chat', '', () => besideAnswer(names(950))],
]

/** What the provider answers. It ignores the request, because reading the largest ones would take seconds. */
let answer = Buffer.alloc(0)
const answering = createServer((request, response) => {
  request.resume()
  request.on('end', () => response.writeHead(200, { 'content-type': 'application/json' }).end(answer))
})

let folder: string
let child: ChildProcess
let baseUrl: string
let key: string

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'svc-router-loop-'))
  const path = join(folder, 'svc-router.yaml')
  await new Promise<void>((resolve) => {
    answering.listen(0, '127.0.0.1', resolve)
  })
  const base_url = `http://127.0.0.1:${(answering.address() as AddressInfo).port}/v1`
  const big = { big: 'openai-responses', 'big-chat': 'openai-chat', 'big-vectors': 'openai-chat' }
  writeFileSync(
    path,
    stringify({
      listen: { port: 0 },
      data: join(folder, 'data'),
      providers: Object.fromEntries(
        Object.entries(big).map(([name, format]) => [name, { preset: 'custom', base_url, format }]),
      ),
      backends: Object.fromEntries(
        Object.keys(big).map((name) => [
          name,
          { provider: name, model: 'any', ...(name === 'big-vectors' && { embeddings: 'any' }) },
        ]),
      ),
      profiles: Object.fromEntries(Object.keys(big).map((name) => [`team/${name}`, { backends: [name] }])),
    }),
  )
  ;({ tester: key } = await addAccounts(path, { tester: 'max' }))
  const { NODE_COMPILE_CACHE } = process.env
  child = fork(new URL('measured-service.ts', import.meta.url), [path], { execArgv: [], env: { NODE_COMPILE_CACHE } })
  ;({ baseUrl } = await tell<{ baseUrl: string }>(startLimitMs))
})

afterAll(async () => {
  const ended = once(child, 'exit')
  child.send('stop')
  await ended
  answering.closeAllConnections()
  answering.close()
  rmSync(folder, { recursive: true, force: true })
})

const lanes = [
  ['relayed', 'team/big-chat', chatSaying('"Hello"')],
  ['translated', 'team/big', responseSaying('"Hello"')],
] as const

// Building some of the bodies takes as long as answering them, so both lanes use the same one.
describe.each(bodies)('no request blocks the event loop for more than 50 ms: %s: %i', (_name, status, rest) => {
  let afterModel = Buffer.alloc(0)
  beforeAll(() => {
    afterModel = Buffer.from(`",${rest()}}`)
  })
  afterAll(() => {
    afterModel = Buffer.alloc(0)
  })

  test.each(lanes)('%s', async (_lane, model, usual) => {
    answer = Buffer.from(usual)
    const body = Buffer.concat([Buffer.from(`{"model":"${model}`), afterModel])
    const seen: Held[] = []
    for (let attempt = 0; attempt < tries; attempt++) {
      seen.push((await held('chat/completions', body, status)).held)
      if (seen.at(-1)!.cpuMs <= mostHeldMs) break
    }
    // The thread's CPU time, because wall time includes other processes of the machine.
    expectWithin(seen, mostHeldMs)
  })
})

test.each(answers)('no answer blocks it for more than 150 ms: %s', async (name, path, model, more, body) => {
  answer = Buffer.from(body())
  const input = path === 'chat/completions' ? '"messages":[{"role":"user","content":"Hello"}]' : '"input":"Hello"'
  const asked = Buffer.from(`{"model":"team/${model}",${input}${more}}`)
  const seen: Held[] = []
  for (let attempt = 0; attempt < tries; attempt++) {
    const { held: one, bytes } = await held(path, asked, 200)
    seen.push(one)
    expect(bytes.byteLength).toBeGreaterThan(answer.byteLength * 0.9)
    // No text of an answer contains it.
    if (name.includes('store')) expect(bytes.includes('"store":true')).toBe(name.endsWith(', stored'))
    if (one.cpuMs <= mostHeldByAnswerMs) break
  }
  expectWithin(seen, mostHeldByAnswerMs)
})

/** The limit is that of a machine of usual speed. */
function expectWithin(seen: readonly Held[], mostMs: number): void {
  const ms = Math.min(...seen.map(({ cpuMs }) => cpuMs))
  if (ms > mostMs) expect(ms, JSON.stringify(seen)).toBeLessThanOrEqual(mostMs * slowdown())
}

interface Answered {
  readonly held: Held
  readonly bytes: Buffer
}

/** How long the event loop was blocked while that body was answered. */
async function held(path: string, body: Buffer, status: number): Promise<Answered> {
  child.send('reset')
  // Not with `fetch`, which copies what it sends and receives.
  const sent = request(`${baseUrl}/${path}`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${key}`,
      'content-type': 'application/json',
      'content-length': body.byteLength,
      'user-agent': 'svc-router-tests/1.0',
    },
  })
  sent.end(body)
  // The service may close the connection before it has read a body that is too large, but not before it has answered.
  const answered = once(sent, 'response')
  sent.on('error', () => {})
  const [response] = (await answered) as [IncomingMessage]
  const bytes = Buffer.concat((await response.toArray()) as Buffer[])
  expect(response.statusCode, bytes.toString('utf8', 0, 300)).toBe(status)
  child.send('read')
  return { held: await tell<Held>(), bytes }
}

/** The next message from the service's process. */
async function tell<Message>(withinMs = 20_000): Promise<Message> {
  const [message] = (await once(child, 'message', { signal: AbortSignal.timeout(withinMs) })) as [Message]
  return message
}
