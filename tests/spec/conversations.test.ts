import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, test } from 'vitest'
import { SkippingClock } from '../../src/simulation/skipping-clock.ts'
import { changeDatabase } from '../change-database.ts'
import type { Service, ServiceOptions } from '../service.ts'
import { shareServices } from '../shared-service.ts'
import { SocketClient } from '../socket-client.ts'

const share = shareServices()
let service: Service

const both = ['openai-chat', 'openai-responses'] as const
const model = 'svc-router/frontier'
const canary = 'canary-conversation-77aa01'

type Json = Readonly<Record<string, unknown>>
interface Item extends Json {
  readonly id: string
  readonly role?: string
  readonly content?: readonly { readonly text: string }[]
}
interface Answered {
  readonly status: number
  readonly headers: Headers
  readonly body: Json & {
    readonly id: string
    readonly data: readonly Item[]
    readonly error?: { readonly code: string; readonly param: string | null; readonly message: string } | null
  }
}

async function start(options: ServiceOptions = {}): Promise<void> {
  service = await share({ formats: ['openai-responses'], ...options })
}

async function call(method: string, path: string, body?: unknown, key = service.key): Promise<Answered> {
  const response = await fetch(`${service.baseUrl}${path}`, {
    method,
    headers: {
      authorization: `Bearer ${key}`,
      'user-agent': 'svc-router-tests/1.0',
      ...(body !== undefined && { 'content-type': 'application/json' }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  return { status: response.status, headers: response.headers, body: (await response.json()) as Answered['body'] }
}

async function create(body?: unknown): Promise<string> {
  const { status, body: made } = await call('POST', '/conversations', body)
  expect(status).toBe(200)
  return made.id
}

const respond = (body: Json, key = service.key): Promise<Answered> =>
  call('POST', '/responses', { model, input: 'Hello.', ...body }, key)

/** The response objects of a stream's events, by the events' types. */
async function streamed(body: Json): Promise<Map<string, Json>> {
  const response = await service.responses({ model, input: 'Hello.', stream: true, ...body })
  const data = (await response.text()).split('\n').filter((line) => line.startsWith('data: {'))
  const events = data.map((line) => JSON.parse(line.slice(6)) as { type: string; response?: Json })
  return new Map(events.flatMap(({ type, response }) => (response === undefined ? [] : [[type, response] as const])))
}

async function itemsOf(id: string): Promise<readonly Item[]> {
  return (await call('GET', `/conversations/${id}/items?order=asc&limit=100`)).body.data
}

const textsOf = async (id: string): Promise<string[]> =>
  (await itemsOf(id)).map(({ role, content }) => `${role}: ${content?.[0]?.text}`)
const says = (text: string): string => `assistant: This is a simulated answer from alpha. You said: "${text}".`
/** The latest request to the backend. */
const sent = (): string => service.providers[0]!.captured().at(-1)!.body

describe.each(both)('a conversation with a backend of format %s', (format) => {
  test('each turn is answered with the whole history, and its input and output are appended', async () => {
    await start({ formats: [format] })
    const id = await create({ items: [{ role: 'user', content: 'My name is Ada.' }] })
    const first = await respond({ input: 'One.', conversation: id })
    expect(first.body).toMatchObject({ conversation: { id }, store: true, previous_response_id: null })
    const events = await streamed({ input: 'Two.', conversation: { id } })
    expect([...events.keys()]).toEqual(['response.created', 'response.in_progress', 'response.completed'])
    for (const response of events.values()) expect(response).toMatchObject({ conversation: { id }, store: true })
    const socket = await SocketClient.open(service, { key: service.key })
    const turn = await socket.turn({ input: 'Three.', conversation: id })
    expect(turn.last.response).toMatchObject({ conversation: { id } })
    socket.socket.terminate()
    expect(await textsOf(id)).toEqual([
      'user: My name is Ada.',
      'user: One.',
      says('One.'),
      'user: Two.',
      says('Two.'),
      'user: Three.',
      says('Three.'),
    ])
    let at = -1
    for (const text of ['My name is Ada.', 'One.', 'Two.', 'Three.']) {
      const next = sent().indexOf(text, at + 1)
      expect(next, text).toBeGreaterThan(at)
      at = next
    }
    expect(sent()).not.toContain('conv_')
    expect(sent()).not.toContain('"conversation"')
    const stored = await call('GET', `/responses/${first.body.id}`)
    expect(stored.body).toMatchObject({ conversation: { id }, output: first.body['output'] })
  })

  test('with "store": false the items are appended and the response is not stored', async () => {
    await start({ formats: [format] })
    const id = await create()
    const { body } = await respond({ input: 'One.', conversation: id, store: false })
    expect(body).toMatchObject({ conversation: { id }, store: false })
    expect((await call('GET', `/responses/${body.id}`)).status).toBe(404)
    const events = await streamed({ input: 'Two.', conversation: id, store: false })
    for (const response of events.values()) expect(response).toMatchObject({ conversation: { id }, store: false })
    expect(await textsOf(id)).toEqual(['user: One.', says('One.'), 'user: Two.', says('Two.')])
  })

  test('a failed or broken answer appends nothing', async () => {
    await start({ formats: [format] })
    const id = await create({ items: [{ role: 'user', content: 'Before.' }] })
    const before = await itemsOf(id)
    service.providers[0]!.script([{ do: 'cut', afterEvents: 6, text: 'one two three four five six' }])
    expect((await streamed({ conversation: id })).has('response.failed')).toBe(true)
    service.providers[0]!.script([{ do: 'status', status: 400 }])
    expect((await respond({ conversation: id })).status).toBe(400)
    expect(await itemsOf(id)).toEqual(before)
  })

  test('an answer that cannot be appended is delivered without a conversation ID', async () => {
    await start({ formats: [format] })
    const id = await create()
    await changeDatabase(
      service,
      `create trigger failing before insert on conversation_items begin select raise(abort, 'no'); end`,
    )
    const { body } = await respond({ conversation: id })
    expect(body).toMatchObject({ conversation: null, store: true, status: 'completed' })
    expect((await call('GET', `/responses/${body.id}`)).body).toMatchObject({ conversation: null })
    const events = await streamed({ conversation: id })
    expect(events.get('response.completed')).toMatchObject({ conversation: null, status: 'completed' })
    await changeDatabase(service, 'drop trigger failing')
    expect(await itemsOf(id)).toEqual([])
    expect((await respond({ conversation: id })).body).toMatchObject({ conversation: { id } })
  })

  test('no text is stored in plaintext, in items, metadata, or IDs', async () => {
    await start({ formats: [format] })
    const item = { role: 'user', content: canary, id: `msg_${canary}` }
    const id = await create({ items: [item], metadata: { note: canary } })
    await streamed({ input: canary, conversation: id, store: false })
    expect(JSON.stringify(await itemsOf(id))).toContain(canary)
    const data = join(service.folder, 'data')
    expect(readdirSync(data).length).toBeGreaterThan(2)
    for (const name of readdirSync(data)) expect(readFileSync(join(data, name), 'latin1'), name).not.toContain(canary)
    expect(JSON.stringify(service.events)).not.toContain(canary)
  })
})

describe('turns', () => {
  test('two simultaneous turns are both answered, and each is appended whole', async () => {
    await start()
    const id = await create()
    const texts = ['A', 'B', 'C', 'D']
    const answers = await Promise.all(texts.map((input) => respond({ input, conversation: id })))
    for (const { status, body } of answers) expect([status, body['conversation']]).toEqual([200, { id }])
    const stored = await textsOf(id)
    expect(stored).toHaveLength(8)
    expect(stored.filter((_, at) => at % 2 === 0).toSorted()).toEqual(texts.map((text) => `user: ${text}`))
    for (let at = 0; at < 8; at += 2) expect(stored[at + 1]).toBe(says(stored[at]!.slice('user: '.length)))
  })

  test('an existing item is neither sent nor appended twice, in full or as a reference', async () => {
    await start()
    const id = await create({ items: [{ role: 'user', content: 'Heron.', id: 'msg_heron' }] })
    const [item] = await itemsOf(id)
    const input = [item!, { type: 'item_reference', id: 'msg_heron' }, { role: 'user', content: 'On.' }]
    expect((await respond({ input, conversation: id })).status).toBe(200)
    expect(sent().split('Heron.')).toHaveLength(2)
    expect((await textsOf(id)).slice(0, 2)).toEqual(['user: Heron.', 'user: On.'])
    expect(await itemsOf(id)).toHaveLength(3)
    const other = await create()
    const reference = [{ type: 'item_reference', id: 'msg_heron' }]
    expect((await respond({ input: reference, conversation: other })).body.error?.code).toBe('item_not_found')
  })

  test('a tool is called and answered across turns', async () => {
    await start()
    const id = await create()
    const call = { type: 'function_call', call_id: 'call_1', name: 'f', arguments: '{}' }
    await addItems(id, [{ role: 'user', content: 'Use it.' }, call])
    const result = await respond({
      input: [{ type: 'function_call_output', call_id: 'call_1', output: 'done' }],
      conversation: id,
    })
    expect(result.status).toBe(200)
    expect(sent()).toContain('call_1')
    expect((await itemsOf(id)).map(({ type }) => type)).toEqual([
      'message',
      'function_call',
      'function_call_output',
      'message',
    ])
  })

  test('a request cannot continue a response and a conversation; a response of a conversation leads to it', async () => {
    await start()
    const id = await create()
    const { body } = await respond({ conversation: id })
    const both = await respond({ conversation: id, previous_response_id: body.id })
    expect([both.status, both.body.error?.code, both.body.error?.param]).toEqual([
      400,
      'invalid_request',
      'previous_response_id',
    ])
    const alone = await respond({ previous_response_id: body.id })
    expect(alone.status).toBe(400)
    expect(alone.body.error?.message).toContain(`"conversation": "${id}"`)
    for (const conversation of [7, '', {}, { id: 3 }, []])
      expect((await respond({ conversation })).body.error?.param).toBe('conversation')
    expect((await respond({ conversation: null })).body['conversation'] ?? null).toBeNull()
  })

  test('on a WebSocket, an unstored turn continues by its conversation, never also by its response ID', async () => {
    await start()
    const id = await create()
    const socket = await SocketClient.open(service, { key: service.key })
    const first = await socket.turn({ input: 'One.', conversation: id, store: false })
    expect(first.last.response).toMatchObject({ conversation: { id }, store: false })
    const previous = { previous_response_id: first.last.response!.id }
    expect((await socket.turn({ input: 'x', store: false, ...previous })).last.error?.code).toBe(
      'previous_response_not_found',
    )
    const plain = await socket.turn({ input: 'Plain.', store: false })
    const mixed = { input: 'x', conversation: id, previous_response_id: plain.last.response!.id }
    expect((await socket.turn(mixed)).last.error).toMatchObject({ code: 'invalid_request' })
    const prepared = await socket.turn({ input: 'x', conversation: id, generate: false })
    expect(prepared.last.error).toMatchObject({ code: 'invalid_request', param: 'conversation' })
    socket.socket.terminate()
    expect(await textsOf(id)).toEqual(['user: One.', says('One.')])
  })

  test('token counts and compactions include all items of the conversation', async () => {
    await start()
    const id = await create({ items: [{ role: 'user', content: 'osprey '.repeat(2_000) }] })
    const alone = await call('POST', '/responses/input_tokens', { input: 'On.' })
    const withHistory = await call('POST', '/responses/input_tokens', { input: 'On.', conversation: id })
    expect(withHistory.body['input_tokens']).toBeGreaterThan((alone.body['input_tokens'] as number) + 2_000)
    const compacted = await call('POST', '/responses/compact', { model, input: 'On.', conversation: id })
    expect(compacted.status).toBe(200)
    expect(sent()).toContain('osprey')
    expect(await itemsOf(id)).toHaveLength(1)
  })

  test('a provider that gives every item the same ID loses no answer', async () => {
    await start()
    const id = await create()
    const { body } = await respond({ input: 'One.', conversation: id })
    const [{ id: outputId }] = body['output'] as [Item]
    expect((await itemsOf(id))[1]!.id).toBe(outputId)
    const provider = service.providers[0]!
    const content = [{ type: 'output_text', text: 'Again.', annotations: [] }]
    const output = [{ type: 'message', id: outputId, role: 'assistant', status: 'completed', content }]
    provider.script([
      { do: 'status', status: 200, body: JSON.stringify({ ...body, id: 'resp_x', store: false, output }) },
    ])
    await respond({ input: 'Two.', conversation: id })
    const texts = await textsOf(id)
    expect(texts).toHaveLength(4)
    expect(texts[3]).toBe('assistant: Again.')
  })
})

describe('conversations belong to their account', () => {
  test('another account cannot see or change a conversation', async () => {
    await start()
    const { key } = await service.addAccount('stranger', 'max')
    const id = await create({ items: [{ role: 'user', content: 'Mine.', id: 'msg_mine' }], metadata: { a: 'b' } })
    for (const [method, path, body] of [
      ['GET', `/conversations/${id}`],
      ['POST', `/conversations/${id}`, { metadata: {} }],
      ['DELETE', `/conversations/${id}`],
      ['GET', `/conversations/${id}/items`],
      ['POST', `/conversations/${id}/items`, { items: [{ role: 'user', content: 'x' }] }],
      ['GET', `/conversations/${id}/items/msg_mine`],
      ['DELETE', `/conversations/${id}/items/msg_mine`],
      ['POST', '/responses', { model, input: 'x', conversation: id }],
      ['POST', '/responses/input_tokens', { model, input: 'x', conversation: id }],
    ] as const) {
      const { status, body: refused } = await call(method, path, body, key)
      expect([status, refused.error?.code], `${method} ${path}`).toEqual([404, 'conversation_not_found'])
      expect((await call(method, path, body, 'nobody')).status).toBe(401)
    }
    expect((await call('GET', `/conversations/${id}`)).body).toMatchObject({ metadata: { a: 'b' } })
    expect(await textsOf(id)).toEqual(['user: Mine.'])
  })

  test('encrypted text moved to another account or conversation cannot be decrypted there', async () => {
    await start()
    const stranger = await service.addAccount('stranger', 'max')
    const id = await create({ items: [{ role: 'user', content: 'Mine.' }] })
    const other = await create({ items: [] })
    await changeDatabase(
      service,
      `update conversation_items set conversation_id = '${other}' where conversation_id = '${id}'`,
    )
    expect((await call('GET', `/conversations/${other}/items`)).status).toBe(404)
    await changeDatabase(service, `update conversations set account_id = '${stranger.account.id}' where id = '${id}'`)
    expect((await call('GET', `/conversations/${id}`, undefined, stranger.key)).status).toBe(404)
    expect(service.events).toContainEqual({ event: 'stored_text_unreadable', reason: 'not_authentic' })
  })

  test('a conversation expires after the retention of responses without use, and not before', async () => {
    const clock = new SkippingClock()
    await start({ clock })
    const used = await create()
    const unused = await create()
    const dayMs = 86_400_000
    clock.step(20 * dayMs)
    expect((await respond({ input: 'On.', conversation: used })).status).toBe(200)
    clock.step(20 * dayMs)
    expect((await call('GET', `/conversations/${used}`)).status).toBe(200)
    expect(await textsOf(used)).toHaveLength(2)
    expect((await call('GET', `/conversations/${unused}`)).body.error?.code).toBe('conversation_not_found')
    expect((await respond({ conversation: unused })).body.error?.code).toBe('conversation_not_found')
  })

  test('with zero retention no conversation can be created', async () => {
    await start({ settings: { retention: { responses: '0d' } } })
    expect((await call('POST', '/conversations', {})).body.error?.code).toBe('invalid_request')
    expect((await respond({ conversation: 'conv_0123456789' })).body.error?.code).toBe('conversation_not_found')
  })
})

describe('the endpoints', () => {
  test("the conversation endpoints use none of the plan's units", async () => {
    await start()
    const id = await create()
    const used = await call('GET', `/conversations/${id}`)
    expect(used.headers.get('x-quota-used')).toBe('0')
    expect((await call('PUT', `/conversations/${id}`, {})).headers.get('allow')).toBe(
      'GET, POST, DELETE, HEAD, OPTIONS',
    )
    expect((await call('GET', `/conversations`)).status).toBe(405)
    expect((await call('GET', `/conversations/${id}/other`)).body.error?.code).toBe('not_found')
  })

  test('items are listed in both orders, page by page, and read and deleted one by one', async () => {
    await start()
    const items = Array.from({ length: 5 }, (_, n) => ({ role: 'user', content: `${n}`, id: `msg ${n}/x` }))
    const id = await create({ items })
    const page = async (query: string): Promise<Json> => (await call('GET', `/conversations/${id}/items?${query}`)).body
    const named = (body: Json): unknown => [
      (body['data'] as Item[]).map((item) => item.id[4]).join(''),
      body['has_more'],
    ]
    expect(named(await page('limit=2'))).toEqual(['43', true])
    expect(named(await page('limit=2&after=msg%203/x'))).toEqual(['21', true])
    expect(named(await page('limit=2&order=asc&after=msg%202/x&include[]=x'))).toEqual(['34', false])
    expect(await page('limit=1')).toMatchObject({ object: 'list', first_id: 'msg 4/x', last_id: 'msg 4/x' })
    expect(await page('after=nothing')).toMatchObject({ error: { param: 'after' } })
    expect(await page('limit=0')).toMatchObject({ error: { param: 'limit' } })
    const path = `/conversations/${id}/items/${encodeURIComponent('msg 3/x')}`
    expect((await call('GET', path)).body).toMatchObject({ id: 'msg 3/x', type: 'message', status: 'completed' })
    expect((await call('DELETE', path)).body).toMatchObject({ id, object: 'conversation' })
    expect((await call('DELETE', path)).body.error?.code).toBe('conversation_item_not_found')
    expect((await call('GET', path)).body.error?.code).toBe('conversation_item_not_found')
    expect(named(await page('limit=9'))).toEqual(['4210', false])
  })

  test('an oversized or malformed append is rejected and appends nothing', async () => {
    await start({ settings: { limits: { body: '64KiB' } } })
    const id = await create()
    const many = (count: number): Json => ({
      items: Array.from({ length: count }, () => ({ role: 'user', content: 'x' })),
    })
    for (const [body, param] of [
      [many(21), 'items'],
      [{}, 'items'],
      [{ items: ['x'] }, 'items[0]'],
      [{ items: [{ role: 'user', content: 7 }] }, 'items[0].content'],
      [{ items: [{ type: 'item_reference', id: 'msg_1' }] }, 'items[0]'],
      [{ items: [{ role: 'user', content: 'x', id: 'x'.repeat(257) }] }, 'items[0].id'],
      [
        {
          items: [
            { role: 'user', content: 'x', id: 'a' },
            { role: 'user', content: 'x', id: 'a' },
          ],
        },
        'items',
      ],
    ] as const) {
      const { status, body: refused } = await call('POST', `/conversations/${id}/items`, body)
      expect([status, refused.error?.code, refused.error?.param], JSON.stringify(body).slice(0, 80)).toEqual([
        400,
        'invalid_request',
        param,
      ])
    }
    expect((await call('POST', `/conversations/${id}/items`, many(20))).body.data).toHaveLength(20)
    const pairs = (count: number): Json => Object.fromEntries(Array.from({ length: count }, (_, n) => [`k${n}`, 'v']))
    for (const metadata of [pairs(17), { ['k'.repeat(65)]: 'v' }, { k: 'v'.repeat(513) }, { k: 1 }, 'x', []]) {
      expect((await call('POST', `/conversations/${id}`, { metadata })).body.error?.param).toBe('metadata')
      expect((await call('POST', '/conversations', { metadata })).body.error?.param).toBe('metadata')
    }
    expect((await call('POST', `/conversations/${id}`, { metadata: pairs(16) })).body['metadata']).toEqual(pairs(16))
    const large = { items: [{ role: 'user', content: 'x'.repeat(40_000) }] }
    expect((await call('POST', `/conversations/${id}/items`, large)).status).toBe(200)
    expect((await call('POST', `/conversations/${id}/items`, large)).body.error?.param).toBe('items')
    expect(await itemsOf(id)).toHaveLength(21)
    const full = await respond({ input: 'x'.repeat(40_000), conversation: id })
    expect([full.status, full.body.error?.param]).toEqual([400, 'conversation'])
  })

  test('deleting a conversation deletes its items, and keeps its stored responses', async () => {
    await start()
    const id = await create()
    const { body } = await respond({ conversation: id })
    expect((await call('DELETE', `/conversations/${id}`)).body).toEqual({
      id,
      object: 'conversation.deleted',
      deleted: true,
    })
    expect((await call('DELETE', `/conversations/${id}`)).status).toBe(404)
    expect((await call('GET', `/responses/${body.id}`)).status).toBe(200)
    const database = new DatabaseSync(join(service.folder, 'data', 'svc-router.db'), { readOnly: true })
    expect(database.prepare('select count(*) as n from conversation_items where conversation_id = ?').get(id)).toEqual({
      n: 0,
    })
    database.close()
  })
})

async function addItems(id: string, items: readonly Json[]): Promise<void> {
  expect((await call('POST', `/conversations/${id}/items`, { items })).status).toBe(200)
}
