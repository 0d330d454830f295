import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Service } from '../service.ts'
import { collect, connect, majors } from './openai-clients.ts'
import { pythonWithOpenai } from './python.ts'

const model = 'svc-router/frontier'
const python = pythonWithOpenai("conversations with Python's openai")
const script = join(import.meta.dirname, 'python', 'conversations.py')
const limitMs = 120_000

let service: Service
beforeAll(async () => {
  service = await Service.start({ formats: ['openai-responses'] })
})
afterAll(() => service.stop())

describe.each(majors)('$name', ({ OpenAI }) => {
  test('it creates, reads, updates, continues, and deletes a conversation', async () => {
    const { client } = connect(OpenAI, service)
    const empty = await client.conversations.create()
    expect(empty).toMatchObject({ object: 'conversation', metadata: {} })
    const made = await client.conversations.create({
      items: [{ role: 'user', content: 'My name is Ada.' }],
      metadata: { topic: 'names' },
    })
    expect(made.id).toMatch(/^conv_\w{24}$/)
    expect(made.created_at).toBeGreaterThan(1_700_000_000)
    expect(await client.conversations.retrieve(made.id)).toEqual(made)
    expect(await client.conversations.update(made.id, { metadata: { topic: 'x' } })).toMatchObject({
      id: made.id,
      metadata: { topic: 'x' },
    })
    const first = await client.responses.create({ model, input: 'Who am I?', conversation: made.id })
    expect(first.conversation).toEqual({ id: made.id })
    const stream = await client.responses.create({ model, input: 'Sure?', conversation: { id: made.id }, stream: true })
    const events = await collect(stream)
    expect(events.at(-1)).toMatchObject({ type: 'response.completed', response: { conversation: { id: made.id } } })
    const roles: string[] = []
    for await (const item of client.conversations.items.list(made.id, { order: 'asc', limit: 2 })) {
      if (item.type === 'message') roles.push(item.role)
    }
    expect(roles).toEqual(['user', 'user', 'assistant', 'user', 'assistant'])
    const added = await client.conversations.items.create(made.id, { items: [{ role: 'user', content: 'One more.' }] })
    expect(added).toMatchObject({ object: 'list', has_more: false, first_id: added.data[0]!.id })
    const itemId = added.data[0]!.id!
    const found = await client.conversations.items.retrieve(itemId, { conversation_id: made.id })
    expect(found).toEqual(added.data[0])
    const after = await client.conversations.items.delete(itemId, { conversation_id: made.id })
    expect(after).toMatchObject({ id: made.id, object: 'conversation' })
    expect(await client.conversations.delete(made.id)).toEqual({
      id: made.id,
      object: 'conversation.deleted',
      deleted: true,
    })
    await expect(client.conversations.retrieve(made.id)).rejects.toMatchObject({
      status: 404,
      code: 'conversation_not_found',
    })
  })
})

test.skipIf(python === undefined)(
  "Python's openai package does the same",
  async () => {
    const env = { ...process.env, OPENAI_BASE_URL: service.baseUrl, OPENAI_API_KEY: service.key }
    const { stdout } = await promisify(execFile)(python!, [script, model], { env, timeout: limitMs })
    expect(JSON.parse(stdout)).toEqual({
      empty: 'conversation',
      metadata: { topic: 'x' },
      conversation: true,
      streamed: true,
      roles: ['user', 'user', 'assistant', 'user', 'assistant'],
      found: 'One more.',
      deleted_item: 'conversation',
      deleted: [true, 'conversation.deleted'],
      refused: [404, 'conversation_not_found'],
    })
  },
  limitMs,
)
