import OpenAI from 'openai'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { changeDatabase } from '../change-database.ts'
import { Service } from '../service.ts'

const text = 'one two three four five six seven'
const slow = { do: 'answer', text, tokenDelayMs: 40, repeat: true } as const
const model = 'svc-router/frontier'

let service: Service
let client: OpenAI

beforeAll(async () => {
  service = await Service.start({ formats: ['openai-responses'] })
  client = new OpenAI({ apiKey: service.key, baseURL: service.baseUrl, maxRetries: 0 })
})
afterAll(() => service.stop())
beforeEach(() => service.providers[0]!.script([{ do: 'answer', text, repeat: true }]))

const calls = (): number => service.providers[0]!.captured().length
const input = 'Say hello.'

async function finished(id: string): Promise<OpenAI.Responses.Response> {
  let response!: OpenAI.Responses.Response
  await expect
    .poll(async () => {
      response = await client.responses.retrieve(id)
      return response.status
    })
    .not.toMatch(/queued|in_progress/)
  return response
}

test('a background response is returned at once, polled, and complete in the end', async () => {
  service.providers[0]!.script([{ do: 'slow_headers', ms: 500, text }])
  const queued = await client.responses.create({ model, input, background: true, metadata: { a: 'b' } })
  expect(queued).toMatchObject({ status: 'queued', background: true, metadata: { a: 'b' }, output: [] })
  expect((await client.responses.retrieve(queued.id)).status).toBe('in_progress')
  const response = await finished(queued.id)
  expect(response).toMatchObject({ id: queued.id, status: 'completed', background: true })
  expect(response.output_text).toBe(text)
  const next = await client.responses.create({ model, input, previous_response_id: queued.id })
  expect(next.status).toBe('completed')
})

test('providers are not asked to run it in the background', async () => {
  const { id } = await client.responses.create({ model, input, background: true })
  await finished(id)
  expect(service.providers[0]!.captured().at(-1)!.body).not.toContain('background')
})

test('canceling stops it and its provider, and canceling again returns the same', async () => {
  service.providers[0]!.script([{ do: 'stall', afterEvents: 4, text, repeat: true }])
  const { id } = await client.responses.create({ model, input, background: true, stream: false })
  const canceled = await client.responses.cancel(id)
  expect(canceled).toMatchObject({ id, status: 'cancelled', error: null })
  expect(await client.responses.cancel(id)).toMatchObject({ id, status: 'cancelled' })
  expect((await client.responses.retrieve(id)).status).toBe('cancelled')
})

test('the stream of a canceled response ends with it, for its creator and for those who resume it', async () => {
  service.providers[0]!.script([slow])
  const created = await client.responses.create({ model, input, background: true, stream: true })
  const seen: OpenAI.Responses.ResponseStreamEvent[] = []
  let id = ''
  for await (const event of created) {
    seen.push(event)
    if (event.type === 'response.created') ({ id } = event.response)
    if (event.type === 'response.output_text.delta') void client.responses.cancel(id)
  }
  expect(seen.at(-1)).toMatchObject({ type: 'response.cancelled', response: { id, status: 'cancelled', error: null } })
  expect(seen.map(({ type }) => type)).not.toContain('error')
  expect(seen.map((event) => event.sequence_number)).toEqual(seen.map((_, number) => number))
  const resumed: OpenAI.Responses.ResponseStreamEvent[] = []
  for await (const event of await client.responses.retrieve(id, { stream: true })) resumed.push(event)
  expect(resumed).toEqual(seen)
})

test('the stream of a response that is canceled before content ends with it, if it has begun', async () => {
  const kept = await Service.start({ formats: ['openai-responses'], settings: { keep_alive: '100ms' } })
  try {
    kept.providers[0]!.script([{ do: 'slow_headers', ms: 60_000, text }])
    const other = new OpenAI({ apiKey: kept.key, baseURL: kept.baseUrl, maxRetries: 0 })
    const types: string[] = []
    let id = ''
    for await (const event of await other.responses.create({ model, input, background: true, stream: true })) {
      types.push(event.type)
      if (event.type === 'response.created') ({ id } = event.response)
      if (event.type === 'response.in_progress') void other.responses.cancel(id)
    }
    expect(types[0]).toBe('response.created')
    expect(types.at(-1)).toBe('response.cancelled')
    expect(types).not.toContain('error')
    const resumed: string[] = []
    for await (const event of await other.responses.retrieve(id, { stream: true })) resumed.push(event.type)
    expect(resumed).toEqual(types)
  } finally {
    await kept.stop()
  }
})

test('the error of a stream that began and failed before content is not retryable, because its retry gets the same', async () => {
  const kept = await Service.start({
    formats: ['openai-responses'],
    settings: { keep_alive: '100ms' },
    timeouts: { headers: '500ms', first_content: '500ms' },
  })
  try {
    kept.providers[0]!.script([{ do: 'slow_headers', ms: 60_000, text, repeat: true }])
    const body = { model, input, background: true, stream: true }
    const ask = async (): Promise<string> =>
      await (await kept.post('/responses', body, { 'idempotency-key': 'began' })).text()
    const first = await ask()
    expect(first).toContain('response.created')
    const ends = [first, await ask()].map((stream) => /event: (?:error|response.failed)\ndata: .*/.exec(stream)?.[0])
    expect(ends[0]).toContain('"retryable":false')
    expect(ends[1]).toBe(ends[0])
  } finally {
    await kept.stop()
  }
})

test('canceling a complete response returns it', async () => {
  const { id } = await client.responses.create({ model, input, background: true })
  await finished(id)
  expect(await client.responses.cancel(id)).toMatchObject({ id, status: 'completed' })
})

test('canceling a response that failed after content returns it', async () => {
  service.providers[0]!.script([{ do: 'error_event', afterEvents: 7, text, tokenDelayMs: 40, repeat: true }])
  const response = await service.post('/responses', { model, input, background: true, stream: true })
  expect(await response.text()).toContain('output_text.delta')
  const id = `resp_${response.headers.get('x-request-id')!.slice(4)}`
  const { error } = await finished(id)
  expect(await client.responses.cancel(id)).toMatchObject({ id, status: 'failed', error })
})

test('canceling a complete response whose answer was too large to be stored for retries returns it', async () => {
  service.providers[0]!.script([{ do: 'answer', words: 45_000 }])
  const response = await service.post('/responses', { model, input, background: true, stream: true })
  expect((await response.text()).length).toBeGreaterThan(8 * 1024 * 1024)
  const id = `resp_${response.headers.get('x-request-id')!.slice(4)}`
  expect(await client.responses.cancel(id)).toMatchObject({ id, status: 'completed' })
})

test('a response that is not in the background cannot be canceled', async () => {
  const { id } = await client.responses.create({ model, input })
  await expect(client.responses.cancel(id)).rejects.toMatchObject({ status: 400, code: 'invalid_request' })
})

test('a failure of all providers is shown as failed', async () => {
  service.providers[0]!.script([{ do: 'status', status: 500, repeat: true }])
  const { id } = await client.responses.create({ model, input, background: true })
  const failed = await finished(id)
  expect(failed).toMatchObject({ status: 'failed', error: { code: 'server_is_overloaded' }, output: [] })
})

test.each([500, 400])('a stream that fails before content with %i runs again with the same key', async (status) => {
  const body = { model, input, background: true, stream: true }
  const headers = { 'idempotency-key': `failed stream ${status}` }
  const before = await usedUnits()
  service.providers[0]!.script([{ do: 'status', status, repeat: true }])
  const failed = await service.post('/responses', body, headers)
  const { error } = (await failed.json()) as { error: { code: string } }
  expect(error.code).toBe(status === 500 ? 'server_is_overloaded' : 'content_rejected')
  service.providers[0]!.script([{ do: 'answer', text, repeat: true }])
  const again = await service.post('/responses', body, headers)
  expect(again.headers.get('idempotent-replayed')).toBeNull()
  expect(await again.text()).toContain('response.completed')
  expect((await usedUnits()) - before).toBe(1)
})

test('the retry of a background request that failed gets the failed response', async () => {
  service.providers[0]!.script([{ do: 'status', status: 500, repeat: true }])
  const headers = { 'Idempotency-Key': 'failed in the background' }
  const first = await client.responses.create({ model, input, background: true }, { headers })
  const failed = await finished(first.id)
  expect(await client.responses.create({ model, input, background: true }, { headers })).toEqual(failed)
})

test('what is rejected before admission is an error, and no response', async () => {
  await expect(client.responses.create({ model: 'unknown', input, background: true })).rejects.toMatchObject({
    status: 404,
    code: 'model_not_found',
  })
  await expect(client.responses.create({ model, input, background: true, store: false })).rejects.toMatchObject({
    status: 400,
    param: 'background',
  })
})

test('the SDK resumes a background stream after any event, and gets all events', async () => {
  service.providers[0]!.script([slow])
  const before = calls()
  const stream = await client.responses.create({ model, input, background: true, stream: true })
  const seen: OpenAI.Responses.ResponseStreamEvent[] = []
  for await (const event of stream) {
    seen.push(event)
    if (seen.length === 6) break
  }
  const created = seen[0] as OpenAI.Responses.ResponseCreatedEvent
  const { id } = created.response
  const last = seen.at(-1)!.sequence_number
  const rest: OpenAI.Responses.ResponseStreamEvent[] = []
  for await (const event of await client.responses.retrieve(id, { stream: true, starting_after: last }))
    rest.push(event)
  const all: OpenAI.Responses.ResponseStreamEvent[] = []
  for await (const event of await client.responses.retrieve(id, { stream: true })) all.push(event)
  expect([...seen, ...rest]).toEqual(all)
  expect(all.at(-1)).toMatchObject({ type: 'response.completed', response: { background: true } })
  const numbers = all.map((event) => event.sequence_number)
  for (const after of numbers) {
    const left: number[] = []
    for await (const event of await client.responses.retrieve(id, { stream: true, starting_after: after }))
      left.push(event.sequence_number)
    expect(left).toEqual(numbers.filter((number) => number > after))
  }
  expect(calls() - before).toBe(1)
})

test('a stream with an Idempotency-Key can be resumed by its ID, too', async () => {
  const headers = { 'Idempotency-Key': 'resumed' }
  const seen: OpenAI.Responses.ResponseStreamEvent[] = []
  for await (const event of await client.responses.create({ model, input, stream: true }, { headers })) seen.push(event)
  const { id } = (seen[0] as OpenAI.Responses.ResponseCreatedEvent).response
  const rest: unknown[] = []
  for await (const event of await client.responses.retrieve(id, { stream: true, starting_after: 2 })) rest.push(event)
  expect(rest).toEqual(seen.filter((event) => event.sequence_number > 2))
})

test('a response whose events are not stored cannot be streamed', async () => {
  const { id } = await client.responses.create({ model, input })
  await expect(client.responses.retrieve(id, { stream: true })).rejects.toMatchObject({ status: 400, param: 'stream' })
  await expect(client.responses.retrieve('resp_0123456789', { stream: true })).rejects.toMatchObject({ status: 404 })
})

test('with a key, a background request that is sent again is the same response', async () => {
  service.providers[0]!.script([slow])
  const before = calls()
  const headers = { 'Idempotency-Key': 'in the background' }
  const first = await client.responses.create({ model, input, background: true }, { headers })
  const again = await client.responses.create({ model, input, background: true }, { headers })
  expect(again.id).toBe(first.id)
  await finished(first.id)
  const last = await client.responses.create({ model, input, background: true }, { headers })
  expect(last).toMatchObject({ id: first.id, status: 'completed' })
  expect(calls() - before).toBe(1)
})

test('a background response is nobody else’s, and deleting it deletes its events', async () => {
  const { id } = await client.responses.create({ model, input, background: true })
  await finished(id)
  const stranger = await service.addAccount('stranger', 'max')
  const theirs = new OpenAI({ apiKey: stranger.key, baseURL: service.baseUrl, maxRetries: 0 })
  await expect(theirs.responses.retrieve(id)).rejects.toMatchObject({ status: 404 })
  await expect(theirs.responses.cancel(id)).rejects.toMatchObject({ status: 404 })
  await expect(theirs.responses.retrieve(id, { stream: true })).rejects.toMatchObject({ status: 404 })
  await client.responses.delete(id)
  await expect(client.responses.retrieve(id)).rejects.toMatchObject({ status: 404 })
})

async function usedUnits(): Promise<number> {
  const response = await service.chat({ model: 'unknown' })
  await response.text()
  return Number(response.headers.get('x-quota-used'))
}

test.each([
  ['while no content has arrived', { do: 'slow_headers', ms: 700, text }],
  ['while its answer is being generated', slow],
] as const)('deleting it %s cancels it: it is charged once, and never readable', async (_, fault) => {
  const [provider] = service.providers
  provider!.script([{ ...fault, repeat: true }])
  const before = await usedUnits()
  const ids = await Promise.all(
    Array.from({ length: 8 }, async (_item, at) => {
      const { id } = await client.responses.create({
        model,
        input,
        background: true,
        ...(at % 2 === 0 && { stream: false }),
      })
      await expect.poll(() => calls()).toBeGreaterThan(0)
      await client.responses.delete(id)
      return id
    }),
  )
  for (let round = 0; round < 5; round += 1) {
    for (const id of ids) await expect(client.responses.retrieve(id)).rejects.toMatchObject({ status: 404 })
    await new Promise((resolve) => setTimeout(resolve, 200))
  }
  expect((await usedUnits()) - before).toBe(ids.length)
})

test('if its generation was deleted meanwhile, it is not charged, and not readable', async () => {
  service.providers[0]!.script([{ do: 'slow_headers', ms: 400, text }])
  const before = await usedUnits()
  const records = (): { charged: number }[] =>
    service.events.flatMap((event) => (event.event === 'request' ? [event] : []))
  const recorded = records().length
  const headers = { 'Idempotency-Key': 'deleted meanwhile' }
  const { id } = await client.responses.create({ model, input, background: true }, { headers })
  // As another process does that took it for dead.
  await changeDatabase(service, `delete from generations where state = 'running'`)
  await expect.poll(() => records().length).toBe(recorded + 1)
  expect(records().at(-1)).toMatchObject({ charged: 0 })
  await expect(client.responses.retrieve(id)).rejects.toMatchObject({ status: 404 })
  expect(await usedUnits()).toBe(before)
})

test.each([true, false])(
  'deleting a running answer with a key says 404 and changes nothing (store: %s)',
  async (store) => {
    service.providers[0]!.script([slow])
    const body = { model, input, stream: true, store }
    const headers = { 'idempotency-key': `running ${store}` }
    const response = await service.post('/responses', body, headers)
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader()
    let seen = ''
    while (!seen.includes('output_text.delta')) seen += (await reader.read()).value ?? ''
    const id = `resp_${response.headers.get('x-request-id')!.slice(4)}`
    await expect(client.responses.delete(id)).rejects.toMatchObject({ status: 404 })
    for (let part = await reader.read(); !part.done; part = await reader.read()) seen += part.value
    expect(seen).toContain('response.completed')
    const stored = await client.responses.delete(id).then(
      () => true,
      () => false,
    )
    expect(stored).toBe(store)
    const again = await service.post('/responses', body, headers)
    // What was deleted is answered anew.
    expect(again.headers.get('idempotent-replayed')).toBe(store ? null : 'true')
    expect((await again.text()) === seen).toBe(!store)
  },
)

test('the retry of a background request has the ID of the request that runs, and says that it is a replay', async () => {
  const headers = { 'idempotency-key': 'who runs it' }
  const body = { model, input, background: true }
  const first = await service.post('/responses', body, headers)
  const { id } = (await first.json()) as { id: string }
  expect(first.headers.get('idempotent-replayed')).toBeNull()
  const again = await service.post('/responses', body, headers)
  expect(again.headers.get('idempotent-replayed')).toBe('true')
  expect(again.headers.get('x-request-id')).toBe(first.headers.get('x-request-id'))
  expect(await again.json()).toMatchObject({ id })
  // A retry shows the response as it is.
  const { status } = await finished(id)
  const last = await service.post('/responses', body, headers)
  expect(await last.json()).toMatchObject({ id, status })
})
