import { readdirSync, readFileSync } from 'node:fs'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { changeDatabase } from '../change-database.ts'
import { Service } from '../service.ts'
import { Wire } from '../wire.ts'

const text = 'one two three four five six seven'
const stream = { stream: true }
const paths = [
  ['/chat/completions', { messages: [{ role: 'user', content: 'Say hello.' }] }],
  ['/responses', { input: 'Say hello.' }],
  ['/messages', { messages: [{ role: 'user', content: 'Say hello.' }], max_tokens: 100 }],
] as const

let service: Service
let keys = 0

beforeAll(async () => {
  service = await Service.start({ formats: ['openai-chat'] })
})
afterAll(() => service.stop())
beforeEach(() => {
  service.providers[0]!.script([{ do: 'answer', text, repeat: true }])
})

const model = 'svc-router/frontier'
const newKey = (): string => `key-${++keys}`
const calls = (): number => service.providers[0]!.captured().length
const post = (path: string, body: object, key: string, headers: Record<string, string> = {}): Promise<Response> =>
  service.post(path, { model, ...body }, { 'idempotency-key': key, ...headers })

async function usedUnits(): Promise<number> {
  const response = await service.chat({ model: 'unknown' })
  await response.text()
  return Number(response.headers.get('x-quota-used'))
}

describe.each(paths)('%s', (path, body) => {
  test.each([
    ['streamed', stream],
    ['whole', {}],
  ])('a retry of a %s answer gets the same bytes, for one unit and one upstream call', async (_, how) => {
    const key = newKey()
    const [callsBefore, unitsBefore] = [calls(), await usedUnits()]
    const first = await post(path, { ...body, ...how }, key)
    const original = await first.text()
    expect(first.status).toBe(200)
    expect(original).toContain('seven')
    expect(first.headers.get('idempotent-replayed')).toBeNull()
    for (let n = 0; n < 2; n += 1) {
      const again = await post(path, { ...body, ...how }, key)
      expect(await again.text()).toBe(original)
      expect(again.headers.get('idempotent-replayed')).toBe('true')
      expect(again.headers.get('x-request-id')).toBe(first.headers.get('x-request-id'))
      expect(again.headers.get('content-type')).toBe(first.headers.get('content-type'))
    }
    expect(calls() - callsBefore).toBe(1)
    expect((await usedUnits()) - unitsBefore).toBe(1)
  })

  test('a stream continues after the last event that the client received', async () => {
    const key = newKey()
    const original = await (await post(path, { ...body, ...stream }, key)).text()
    const events = original.split('\n\n').filter((event) => event !== '')
    const ids = events.map((event) => /\nid: (\d+)$/.exec(event)?.[1])
    for (const [at, id] of ids.entries()) {
      if (id === undefined) continue
      const rest = await (await post(path, { ...body, ...stream }, key, { 'last-event-id': id })).text()
      expect(rest).toBe(
        events
          .slice(at + 1)
          .map((event) => `${event}\n\n`)
          .join(''),
      )
    }
  })
})

test.each(paths)(
  'a stream to %s that broke off does not say that it is retryable: its retry gets the same',
  async (path, body) => {
    service.providers[0]!.script([{ do: 'cut', afterEvents: 4, text }])
    const key = newKey()
    const broken = await (await post(path, { ...body, ...stream }, key)).text()
    expect(broken).toContain('upstream_broken')
    expect(broken).not.toMatch(/"retryable":\s*true/)
    expect(await (await post(path, { ...body, ...stream }, key)).text()).toBe(broken)
  },
)

test.each([0, 1, 1_000])('a client that has the last event gets an empty stream (%d beyond it)', async (beyond) => {
  const key = newKey()
  const [path, body] = paths[1]
  const first = await post(path, { ...body, ...stream }, key)
  const events = await first.text()
  const last = Number(/\nid: (\d+)\n\n(?:data: \[DONE\]\n\n)?$/.exec(events)?.[1])
  const id = `resp_${first.headers.get('x-request-id')!.slice(4)}`
  const rest = await post(path, { ...body, ...stream }, key, { 'last-event-id': String(last + beyond) })
  const query = `stream=true&starting_after=${last + beyond}`
  const resumed = await fetch(`${service.baseUrl}/responses/${id}?${query}`, {
    headers: { authorization: `Bearer ${service.key}` },
  })
  for (const response of [rest, resumed]) {
    expect(response.status).toBe(200)
    expect((await response.text()).replace('data: [DONE]\n\n', '')).toBe('')
  }
})

test.each([{}, { stream: true, background: true }])('a compaction with a key is made once (%j)', async (more) => {
  const [key, body] = [newKey(), { input: [{ role: 'user', content: 'Say hello.' }], ...more }]
  const [callsBefore, unitsBefore] = [calls(), await usedUnits()]
  const both = await Promise.all([post('/responses/compact', body, key), post('/responses/compact', body, key)])
  const [first, second, third] = await Promise.all(
    [...both, await post('/responses/compact', body, key)].map((response) => response.text()),
  )
  expect(both.map(({ status }) => status)).toEqual([200, 200])
  expect(JSON.parse(first!)).toMatchObject({ object: 'response.compaction' })
  expect([second, third]).toEqual([first, first])
  expect([calls() - callsBefore, (await usedUnits()) - unitsBefore]).toEqual([1, 1])
  // The same body to the other path is another request.
  expect((await post('/responses', { ...body, background: undefined }, key)).status).toBe(409)
})

test('a compaction that fails before its answer runs again with the same key', async () => {
  const [key, body] = [newKey(), { input: [{ role: 'user', content: 'Say hello.' }] }]
  service.providers[0]!.script([
    { do: 'status', status: 400 },
    { do: 'answer', text, repeat: true },
  ])
  expect((await post('/responses/compact', body, key)).status).toBe(400)
  expect((await post('/responses/compact', body, key)).status).toBe(200)
})

test.each(paths)('%s: without a key, a stream cannot be continued, and none is started', async (path, body) => {
  const before = calls()
  for (const id of ['3', 'msg_3']) {
    const continued = await service.post(path, { model, ...body, ...stream }, { 'last-event-id': id })
    expect([continued.status, await continued.text()]).toEqual([502, expect.stringContaining('answer_interrupted')])
  }
  expect(calls()).toBe(before)
})

test('another request with the same key is 409, and costs nothing', async () => {
  const key = newKey()
  await (await post('/chat/completions', { messages: [{ role: 'user', content: 'A' }] }, key)).text()
  const before = calls()
  const other = await post('/chat/completions', { messages: [{ role: 'user', content: 'B' }] }, key)
  expect(other.status).toBe(409)
  expect(await other.json()).toMatchObject({ error: { code: 'idempotency_key_reused', retryable: false } })
  expect(other.headers.get('x-should-retry')).toBe('false')
  expect(calls()).toBe(before)
})

test('the key of one account means nothing to another', async () => {
  const key = newKey()
  const body = { messages: [{ role: 'user', content: 'A secret.' }] }
  await (await post('/chat/completions', body, key)).text()
  const stranger = await service.addAccount('stranger', 'max')
  const before = calls()
  const theirs = await post('/chat/completions', body, key, { authorization: `Bearer ${stranger.key}` })
  expect(theirs.status).toBe(200)
  expect(theirs.headers.get('idempotent-replayed')).toBeNull()
  expect(calls()).toBe(before + 1)
})

test.each(['', 'x'.repeat(256), 'tab\there', 'ü'])('the key %j is rejected', async (key) => {
  const wire = await Wire.open(service.origin)
  const body = JSON.stringify({ model, messages: [{ role: 'user', content: 'A' }] })
  await wire.write(
    `POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\nuser-agent: tests/1.0\r\ncontent-type: application/json\r\nauthorization: Bearer ${service.key}\r\nidempotency-key: ${key}\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  )
  const answer = await wire.answer()
  wire.destroy()
  expect(answer.status).toBe(400)
  expect(JSON.parse(answer.text)).toMatchObject({ error: { code: 'invalid_request', param: 'idempotency-key' } })
})

test('a failure is not stored: a retry runs again', async () => {
  const key = newKey()
  service.providers[0]!.script([{ do: 'status', status: 400 }])
  const before = calls()
  const failed = await post('/chat/completions', { messages: [{ role: 'user', content: 'A' }] }, key)
  expect(failed.ok).toBe(false)
  const again = await post('/chat/completions', { messages: [{ role: 'user', content: 'A' }] }, key)
  expect(again.status).toBe(200)
  expect(again.headers.get('idempotent-replayed')).toBeNull()
  expect(calls() - before).toBeGreaterThanOrEqual(2)
})

test('200 clients at once with one key get one answer, from one upstream call', async () => {
  const key = newKey()
  const before = calls()
  const unitsBefore = await usedUnits()
  const body = { messages: [{ role: 'user', content: 'All at once.' }], ...stream }
  const texts = await Promise.all(
    Array.from({ length: 200 }, async () => (await post('/chat/completions', body, key)).text()),
  )
  expect(new Set(texts).size).toBe(1)
  expect(texts[0]).toContain('seven')
  expect(calls() - before).toBe(1)
  expect((await usedUnits()) - unitsBefore).toBe(1)
})

describe('a client that disconnects', () => {
  const slow = { do: 'answer', text, tokenDelayMs: 20, repeat: true } as const
  const ask = { messages: [{ role: 'user', content: 'Slowly.' }], ...stream }

  /** Sends a request and disconnects after some bytes of the answer. */
  async function cut(path: string, body: object, key: string, bytes: number): Promise<Buffer> {
    const left = new AbortController()
    const headers = { 'idempotency-key': key }
    const response = await service.post(path, { model, ...body }, headers, left.signal)
    const received: Uint8Array[] = []
    let length = 0
    for await (const chunk of response.body!) {
      received.push(chunk)
      length += chunk.length
      if (length >= bytes) break
    }
    left.abort()
    return Buffer.concat(received).subarray(0, bytes)
  }

  test.each(paths)('%s: its retry receives the running stream from the start, identically', async (path, body) => {
    service.providers[0]!.script([slow])
    const key = newKey()
    const [callsBefore, unitsBefore] = [calls(), await usedUnits()]
    const prefix = await cut(path, { ...body, ...stream }, key, 300)
    const again = await post(path, { ...body, ...stream }, key)
    const whole = Buffer.from(await again.arrayBuffer())
    expect(again.headers.get('idempotent-replayed')).toBe('true')
    expect(whole.subarray(0, prefix.length).equals(prefix)).toBe(true)
    expect(whole.toString()).toContain('seven')
    expect(Buffer.from(await (await post(path, { ...body, ...stream }, key)).arrayBuffer()).equals(whole)).toBe(true)
    expect(calls() - callsBefore).toBe(1)
    expect((await usedUnits()) - unitsBefore).toBe(1)
  })

  test('before any byte, its retry receives the whole answer that was generated meanwhile', async () => {
    service.providers[0]!.script([{ do: 'slow_headers', ms: 300, text }])
    const key = newKey()
    const before = calls()
    const left = new AbortController()
    const first = service.post(
      '/chat/completions',
      { model, messages: ask.messages },
      { 'idempotency-key': key },
      left.signal,
    )
    await expect.poll(() => calls()).toBe(before + 1)
    left.abort()
    await expect(first).rejects.toThrow()
    const again = await post('/chat/completions', { messages: ask.messages }, key)
    expect(await again.text()).toContain('seven')
    expect(calls()).toBe(before + 1)
  })

  test('the events that it misses follow its Last-Event-ID while the stream runs', async () => {
    service.providers[0]!.script([slow])
    const key = newKey()
    const part = (await cut('/chat/completions', ask, key, 500)).toString()
    const events = part.split('\n\n').slice(0, -1)
    const id = /\nid: (\d+)$/.exec(events.at(-1)!)![1]!
    const rest = await (await post('/chat/completions', ask, key, { 'last-event-id': id })).text()
    const whole = await (await post('/chat/completions', ask, key)).text()
    expect(events.map((event) => `${event}\n\n`).join('') + rest).toBe(whole)
  })
})

test('a request with a key takes one place, like any other', async () => {
  const full = await Service.start({ formats: ['openai-chat'], settings: { limits: { streams: 10 } } })
  try {
    full.providers[0]!.script([{ do: 'slow_headers', ms: 200, text, repeat: true }])
    // An account may hold four fifths of all places.
    const statuses = Array.from({ length: 8 }, async (_, number) => {
      return (await full.chat({}, { 'idempotency-key': `place-${number}` })).status
    })
    expect(await Promise.all(statuses)).toEqual(Array(8).fill(200))
  } finally {
    await full.stop()
  }
})

test('a request whose answer cannot be stored before content is not charged, and its retry is', async () => {
  const failing = await Service.start({ formats: ['openai-chat'], settings: { keep_alive: '100ms' } })
  try {
    const left = (response: Response): number => Number(response.headers.get('x-quota-remaining'))
    const before = left(await failing.chat())
    failing.providers[0]!.script([
      { do: 'slow_headers', ms: 60_000, text },
      { do: 'answer', text },
    ])
    const ask = (): Promise<Response> => failing.chat(stream, { 'idempotency-key': 'unstored' })
    await changeDatabase(failing, 'alter table generation_chunks rename to elsewhere')
    const refused = await ask()
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '1'])
    expect(await refused.json()).toMatchObject({ error: { code: 'store_unavailable' } })
    await changeDatabase(failing, 'alter table elsewhere rename to generation_chunks')
    const answered = await ask()
    expect(await answered.text()).toContain('"finish_reason":"stop"')
    expect(before - left(answered)).toBe(1)
    const ends = failing.events.flatMap((event) => (event.event === 'request' ? [[event.outcome, event.charged]] : []))
    expect(ends.slice(1)).toEqual([
      ['store_unavailable', 0],
      ['answered', 1],
    ])
  } finally {
    await failing.stop()
  }
})

describe('limits', () => {
  let short: Service

  beforeAll(async () => {
    short = await Service.start({
      formats: ['openai-chat'],
      settings: { limits: { detached: '300ms' } },
    })
  })
  afterAll(() => short.stop())

  const ask = (key: string, more: object = {}): Promise<Response> =>
    short.chat({ ...stream, ...more }, { 'idempotency-key': key })
  const callsOfShort = (): number => short.providers[0]!.captured().length

  test('an answer that no client waits for is aborted after a while, and its retry says so', async () => {
    short.providers[0]!.script([{ do: 'stall', afterEvents: 4, text, repeat: true }])
    const before = callsOfShort()
    const response = await ask('left')
    const reader = response.body!.getReader()
    const first = Buffer.from((await reader.read()).value ?? '').toString()
    await reader.cancel()
    await expect.poll(() => short.events.filter(({ event }) => event === 'request').length).toBe(1)
    const again = await (await ask('left')).text()
    expect(again.startsWith(first)).toBe(true)
    expect(again).toContain('"code":"answer_interrupted"')
    expect(again).toContain('data: [DONE]')
    expect(await (await ask('left')).text()).toBe(again)
    expect(callsOfShort() - before).toBe(1)
  })

  test('retries that read large answers use up the unadmitted work of their account', async () => {
    const reader = await Service.start({ formats: ['openai-chat'] })
    try {
      reader.providers[0]!.script([{ do: 'answer', length: 7_000_000 }])
      let wait: string | null = null
      const retry = async (): Promise<number> => {
        const response = await reader.chat({}, { 'idempotency-key': 'read-often' })
        await response.arrayBuffer()
        wait = response.headers.get('retry-after')
        return response.status
      }
      const statuses: number[] = []
      // 96 MiB per minute; a new minute may begin in between.
      while (statuses.length < 40 && statuses.at(-1) !== 429) statuses.push(await retry())
      expect(statuses.at(-1)).toBe(429)
      expect(statuses.slice(0, -1)).toEqual(Array(statuses.length - 1).fill(200))
      expect(wait).not.toBeNull()
    } finally {
      await reader.stop()
    }
  })

  test('an answer that is too large is delivered, but not again', async () => {
    short.providers[0]!.script([{ do: 'answer', length: 9_000_000 }])
    const before = callsOfShort()
    const whole = await (await ask('large', { stream: false })).text()
    expect(whole.length).toBeGreaterThan(9_000_000)
    const again = await ask('large', { stream: false })
    expect(again.status).toBe(502)
    expect(await again.json()).toMatchObject({ error: { code: 'answer_interrupted' } })
    expect(callsOfShort() - before).toBe(1)
  })

  test('a client that reads nothing does not slow down the others', async () => {
    short.providers[0]!.script([{ do: 'answer', words: 20_000 }])
    const before = callsOfShort()
    const body = JSON.stringify({ model, messages: [{ role: 'user', content: 'Much.' }], ...stream })
    const wire = await Wire.open(short.origin)
    await wire.write(
      `POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\nuser-agent: tests/1.0\r\ncontent-type: application/json\r\nauthorization: Bearer ${short.key}\r\nidempotency-key: much\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    )
    await expect.poll(callsOfShort).toBe(before + 1)
    const text = await (await short.post('/chat/completions', body, { 'idempotency-key': 'much' })).text()
    expect(text.length).toBeGreaterThan(2_000_000)
    expect(text).toContain('"finish_reason":"stop"')
    expect(callsOfShort()).toBe(before + 1)
    wire.destroy()
  })

  test('after its retention, a key is new', async () => {
    short.providers[0]!.script([{ do: 'answer', text, repeat: true }])
    const before = callsOfShort()
    await (await ask('old')).text()
    await (await ask('old')).text()
    expect(callsOfShort() - before).toBe(1)
    await changeDatabase(short, 'update generations set expires_at_ms = 1')
    const again = await ask('old')
    expect(again.headers.get('idempotent-replayed')).toBeNull()
    expect(await again.text()).toContain('seven')
    expect(callsOfShort() - before).toBe(2)
  })

  test('if its generation is deleted before content, a request runs again under another ID, and is charged once', async () => {
    const firsts = [
      { do: 'slow_first', ms: 300 },
      { do: 'answer', text, repeat: true },
    ] as const
    short.providers[0]!.script([...firsts])
    const before = callsOfShort()
    const asked = ask('deleted')
    await expect.poll(callsOfShort).toBe(before + 1)
    // As another node does that took it over and then failed, or a sweep after a short retention.
    await changeDatabase(short, `delete from generations where state = 'running'`)
    const answer = await asked
    expect(await answer.text()).toContain('seven')
    expect(callsOfShort() - before).toBe(2)
    // The ledger writes on: a second record with the same ID would have stopped it for every account.
    expect(await (await ask('after it')).text()).toContain('seven')
    const requests = (): { requestId: string; charged: number }[] =>
      short.events.flatMap((event) => (event.event === 'request' ? [event] : [])).slice(-3)
    await expect.poll(() => requests().map(({ charged }) => charged)).toEqual([0, 1, 1])
    expect(new Set(requests().map(({ requestId }) => requestId)).size).toBe(3)
    expect(answer.headers.get('x-request-id')).toBe(requests()[1]!.requestId)
  })

  test('nothing that was said is readable in the database', async () => {
    short.providers[0]!.script([{ do: 'answer', text: 'canary-of-idempotency', repeat: true }])
    expect(await (await ask('secret key of a caller')).text()).toContain('canary-of-idempotency')
    const data = `${short.folder}/data`
    for (const name of readdirSync(data)) {
      const bytes = readFileSync(`${data}/${name}`, 'latin1')
      expect(bytes).not.toContain('canary-of-idempotency')
      expect(bytes).not.toContain('secret key of a caller')
    }
    expect(JSON.stringify(short.events)).not.toContain('secret key of a caller')
  })
})
