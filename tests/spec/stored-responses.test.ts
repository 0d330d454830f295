import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, test } from 'vitest'
import { changeDatabase } from '../change-database.ts'
import type { Service, ServiceOptions } from '../service.ts'
import { shareServices } from '../shared-service.ts'
import { ask } from './provoke.ts'

const share = shareServices()
let service: Service

const both = ['openai-chat', 'openai-responses'] as const
const model = 'svc-router/frontier'
const canary = 'canary-stored-51c0ffee'

interface Kept {
  readonly id: string
  readonly store: boolean
  readonly previous_response_id: string | null
  readonly output: readonly { readonly id: string }[]
}

async function start(options: ServiceOptions = {}): Promise<void> {
  service = await share({ formats: ['openai-responses'], ...options })
}

async function post(body: object, key = service.key): Promise<{ status: number; answer: Kept; code?: string }> {
  const { status, text } = await ask(service, { path: '/responses', key, body: { model, ...body } })
  const parsed = JSON.parse(text) as Kept & { error?: { code: string } | null }
  return { status, answer: parsed, ...(parsed.error ? { code: parsed.error.code } : {}) }
}

async function get(path: string, key = service.key, method = 'GET'): Promise<Response> {
  return fetch(`${service.baseUrl}${path}`, {
    method,
    headers: { authorization: `Bearer ${key}`, 'user-agent': 'svc-router-tests/1.0' },
  })
}

/** The response objects of a stream's events, by the events' types. */
async function streamed(body: object): Promise<Map<string, Kept>> {
  const { text } = await ask(service, { path: '/responses', body: { model, stream: true, ...body } })
  expect(text.endsWith('data: [DONE]\n\n')).toBe(true)
  const data = text.split('\n').filter((line) => line.startsWith('data: {'))
  const events = data.map((line) => JSON.parse(line.slice(6)) as { type: string; response?: Kept })
  return new Map(events.flatMap(({ type, response }) => (response === undefined ? [] : [[type, response] as const])))
}

const failingSaves = `create trigger failing before insert on stored_responses begin select raise(abort, 'no'); end`

describe('stored data belongs to its account', () => {
  test('another account can neither see nor delete its responses, items, and inputs', async () => {
    await start()
    const stranger = await service.addAccount('stranger', 'max')
    const { answer } = await post({ input: 'Mine.' })
    const paths = [`/responses/${answer.id}`, `/responses/${answer.id}/input_items`]
    for (const path of paths) {
      expect((await get(path)).status).toBe(200)
      expect((await get(path, stranger.key)).status).toBe(404)
    }
    expect((await get(`/responses/${answer.id}`, stranger.key, 'DELETE')).status).toBe(404)
    expect(await post({ input: 'x', previous_response_id: answer.id }, stranger.key)).toMatchObject({
      status: 400,
      code: 'previous_response_not_found',
    })
    const reference = { input: [{ type: 'item_reference', id: answer.output[0]!.id }] }
    expect(await post(reference, stranger.key)).toMatchObject({ status: 404, code: 'item_not_found' })
    expect((await post(reference)).status).toBe(200)
    expect((await get(`/responses/${answer.id}`)).status).toBe(200)
  })

  test('encrypted text moved to another account cannot be decrypted there', async () => {
    await start()
    const stranger = await service.addAccount('stranger', 'max')
    const { answer } = await post({ input: 'Mine.' })
    await changeDatabase(service, `update stored_responses set account_id = '${stranger.account.id}'`)
    expect((await get(`/responses/${answer.id}`, stranger.key)).status).toBe(404)
    expect(service.events).toContainEqual({ event: 'stored_text_unreadable', reason: 'not_authentic' })
  })

  test('only the account that made a compaction can decrypt it', async () => {
    await start()
    const stranger = await service.addAccount('stranger', 'max')
    const { text } = await ask(service, { path: '/responses/compact', body: { model, input: 'Mine.' } })
    const { output } = JSON.parse(text) as { output: unknown[] }
    expect((await post({ input: [...output, { role: 'user', content: 'On.' }] })).status).toBe(200)
    expect(await post({ input: output }, stranger.key)).toMatchObject({ status: 400, code: 'invalid_request' })
  })

  test("reading needs a key, and uses none of the plan's units", async () => {
    await start()
    const { answer } = await post({ input: 'Hello' })
    expect((await get(`/responses/${answer.id}`, 'nobody')).status).toBe(401)
    const used = []
    for (let n = 0; n < 3; n++) used.push((await get(`/responses/${answer.id}`)).headers.get('x-quota-used'))
    expect(used).toEqual(['1', '1', '1'])
    const odd = await get('/responses/resp_..%2F..%2Fetc')
    expect(odd.status).toBe(404)
    const wrong = await fetch(`${service.baseUrl}/responses/${answer.id}`, {
      method: 'PUT',
      headers: { authorization: `Bearer ${service.key}`, 'user-agent': 'svc-router-tests/1.0' },
    })
    expect([wrong.status, wrong.headers.get('allow')]).toEqual([405, 'GET, DELETE, HEAD, OPTIONS'])
  })
})

describe.each(both)('a backend of format %s', (format) => {
  test('no text is stored in plaintext, in input, output, instructions, metadata, or IDs', async () => {
    await start({ formats: [format] })
    const input = [{ role: 'user', content: canary, id: `msg_${canary}` }]
    const { answer } = await post({ input, instructions: canary, metadata: { note: canary } })
    await streamed({ input: canary, previous_response_id: answer.id })
    expect(JSON.stringify(await (await get(`/responses/${answer.id}/input_items`)).json())).toContain(canary)
    const data = join(service.folder, 'data')
    expect(readdirSync(data).length).toBeGreaterThan(2)
    for (const name of readdirSync(data)) expect(readFileSync(join(data, name), 'latin1'), name).not.toContain(canary)
    expect(JSON.stringify(service.events)).not.toContain(canary)
  })

  test('a response that cannot be saved is delivered whole and says that it is not stored', async () => {
    await start({ formats: [format] })
    await changeDatabase(service, failingSaves)
    const { answer } = await post({ input: 'Hello' })
    expect(answer.store).toBe(false)
    expect(answer.output).toHaveLength(1)
    const events = await streamed({ input: 'Hello' })
    expect(events.get('response.completed')).toMatchObject({ store: false, status: 'completed' })
    expect(events.get('response.completed')!.output).toHaveLength(1)
    expect(service.events.filter(({ event }) => event === 'store_failing')).toHaveLength(2)
    await changeDatabase(service, 'drop trigger failing')
    for (const { id } of [answer, events.get('response.completed')!]) {
      expect((await get(`/responses/${id}`)).status).toBe(404)
    }
    expect((await post({ input: 'Hello' })).answer.store).toBe(true)
  })

  test('with zero retention nothing is stored or claimed to be', async () => {
    await start({ formats: [format], settings: { retention: { responses: '0d' } } })
    const { answer } = await post({ input: 'Hello' })
    expect(answer.store).toBe(false)
    const events = await streamed({ input: 'Hello', store: true })
    for (const response of events.values()) expect(response.store).toBe(false)
    expect((await get(`/responses/${answer.id}`)).status).toBe(404)
    expect(await post({ input: 'x', previous_response_id: answer.id })).toMatchObject({ status: 400 })
    const database = new DatabaseSync(join(service.folder, 'data', 'svc-router.db'), { readOnly: true })
    expect(database.prepare('select count(*) as n from stored_responses').get()).toEqual({ n: 0 })
    database.close()
  })

  test('chat completions and store: false store nothing', async () => {
    await start({ formats: [format] })
    await service.chat()
    await post({ input: 'Hello', store: false })
    await streamed({ input: 'Hello', store: false })
    const database = new DatabaseSync(join(service.folder, 'data', 'svc-router.db'), { readOnly: true })
    expect(database.prepare('select count(*) as n from stored_responses').get()).toEqual({ n: 0 })
    expect(database.prepare('select count(*) as n from stored_items').get()).toEqual({ n: 0 })
    database.close()
  })

  test('every event of a stream has the same response ID, stored state, and previous response', async () => {
    await start({ formats: [format] })
    const { answer } = await post({ input: 'Hello' })
    const events = await streamed({ input: 'On.', previous_response_id: answer.id })
    expect([...events.keys()]).toEqual(['response.created', 'response.in_progress', 'response.completed'])
    const [first] = events.values()
    for (const response of events.values()) {
      expect(response).toMatchObject({ id: first!.id, store: true, previous_response_id: answer.id, model })
    }
    expect((await get(`/responses/${first!.id}`)).status).toBe(200)
  })

  test('a broken stream is not stored', async () => {
    await start({ formats: [format] })
    service.providers[0]!.script([{ do: 'cut', afterEvents: 6, text: 'one two three four five six' }])
    const events = await streamed({ input: 'Hello' })
    const failed = events.get('response.failed')!
    expect((await get(`/responses/${failed.id}`)).status).toBe(404)
  })
})

describe('an invalid continuation is rejected before it is counted', () => {
  test('a chain that lost one of its responses is rejected', async () => {
    await start()
    const first = await post({ input: 'One.' })
    const second = await post({ input: 'Two.', previous_response_id: first.answer.id })
    await get(`/responses/${first.answer.id}`, service.key, 'DELETE')
    expect(await post({ input: 'Three.', previous_response_id: second.answer.id })).toMatchObject({
      status: 400,
      code: 'previous_response_not_found',
    })
    expect(service.providers[0]!.captured()).toHaveLength(2)
    expect((await get(`/responses/${second.answer.id}`)).headers.get('x-quota-used')).toBe('2')
  })

  test('a conversation larger than a request may be is rejected, while each of its responses can be read', async () => {
    await start({ settings: { limits: { body: '64KiB' } } })
    let previous: string | undefined
    let refusal: { status: number; code?: string } | undefined
    for (let n = 0; n < 8 && refusal === undefined; n++) {
      const more = previous === undefined ? {} : { previous_response_id: previous }
      const { status, answer, code } = await post({ input: 'word '.repeat(4_000), ...more })
      if (status !== 200) refusal = { status, ...(code === undefined ? {} : { code }) }
      else previous = answer.id
    }
    expect(refusal).toEqual({ status: 400, code: 'invalid_request' })
    expect((await get(`/responses/${previous}`)).status).toBe(200)
  })

  test('a response too large to store is delivered and says that it is not stored', async () => {
    await start({ settings: { limits: { body: '64KiB' } } })
    service.providers[0]!.script([{ do: 'answer', length: 100_000 }])
    const { answer } = await post({ input: 'Much.' })
    expect(answer.store).toBe(false)
    expect((await get(`/responses/${answer.id}`)).status).toBe(404)
  })

  test('an answer beyond ASCII, with encrypted reasoning, is stored as it is sent', async () => {
    await start({ formats: ['openai-responses'] })
    service.providers[0]!.script([{ do: 'answer', text: 'é😀' }])
    const { answer } = await post({ input: 'Beyond.', reasoning: { effort: 'high' } })
    expect(JSON.stringify(answer)).toContain('é😀')
    expect(await (await get(`/responses/${answer.id}`)).text()).toContain('é😀')
  })

  test('background mode is rejected if nothing is stored for retries', async () => {
    await start({ settings: { retention: { retries: '0d' } } })
    expect(await post({ input: 'x', background: true })).toMatchObject({ status: 400, code: 'unsupported_parameter' })
    expect(await post({ input: 'x', background: false })).toMatchObject({ status: 200 })
  })
})

describe('a provider is never asked to store anything', () => {
  test('the provider gets store: false and is asked for reasoning that can be sent again', async () => {
    await start()
    const sent = (): Record<string, unknown> =>
      JSON.parse(service.providers[0]!.captured().at(-1)!.body) as Record<string, unknown>
    await post({ input: 'Hello' })
    expect(sent()).toMatchObject({ store: false })
    expect(sent()).not.toHaveProperty('include')
    const { answer } = await post({ input: 'Think.', reasoning: { effort: 'high' }, include: ['x'] })
    expect(sent()).toMatchObject({ store: false, include: ['x', 'reasoning.encrypted_content'] })
    const reasoning = answer.output.find(({ id }) => id.startsWith('rs_')) as { encrypted_content?: string } | undefined
    const [, own] = /^svcr1\.[\w-]{12}\.(.+)$/.exec(reasoning!.encrypted_content!)!
    await post({ input: 'On.', previous_response_id: answer.id })
    expect(JSON.stringify(sent()['input'])).toContain(own)
    expect(JSON.stringify(sent()['input'])).not.toContain('rs_')
  })

  test('encrypted reasoning returns only to the backend that issued it, of several', async () => {
    await start({ formats: ['openai-responses', 'openai-responses'] })
    const [alpha, beta] = service.providers
    const { answer } = await post({ input: 'Think.', reasoning: { effort: 'high' } })
    const [first] = answer.output as readonly { encrypted_content?: string }[]
    const [, sealed] = /^svcr1\.[\w-]{12}\.(.+)$/.exec(first!.encrypted_content!)!
    await post({ input: 'On.', previous_response_id: answer.id })
    expect(alpha!.captured().at(-1)!.body).toContain(sealed)
    alpha!.script([{ do: 'status', status: 503 }])
    await post({ input: 'On.', previous_response_id: answer.id })
    expect(beta!.captured().at(-1)!.body).not.toContain(sealed)
  })

  test('reasoning that is only referenced by ID is left out, because no provider knows it', async () => {
    await start()
    const bare = { type: 'reasoning', id: 'rs_1', summary: [{ type: 'summary_text', text: 'Hm.' }] }
    expect((await post({ input: [bare, { role: 'user', content: 'On.' }] })).status).toBe(200)
    expect(service.providers[0]!.captured()[0]!.body).not.toContain('rs_1')
  })
})
