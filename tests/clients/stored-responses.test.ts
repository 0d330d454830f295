import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Service } from '../service.ts'
import { collect, connect, majors } from './openai-clients.ts'

const model = 'svc-router/frontier'

describe.each(['openai-chat', 'openai-responses'] as const)('a backend of format %s', (format) => {
  let service: Service
  beforeAll(async () => {
    service = await Service.start({ formats: [format] })
  })
  afterAll(() => service.stop())

  /** The last request to the backend. */
  const sent = (): string => service.providers[0]!.captured().at(-1)!.body

  describe.each(majors)('$name', ({ OpenAI }) => {
    test('a chain of three answers has the whole conversation, without earlier instructions', async () => {
      const { client } = connect(OpenAI, service)
      const first = await client.responses.create({ model, input: 'My name is Ada.', instructions: 'Be short.' })
      expect(first).toMatchObject({ store: true })
      expect(first.id).toMatch(/^resp_\w{24}$/)
      const second = await client.responses.create({
        model,
        input: [{ role: 'user', content: 'I live in Oslo.' }],
        previous_response_id: first.id,
      })
      expect(second.previous_response_id).toBe(first.id)
      const third = await client.responses.create({ model, input: 'Who am I?', previous_response_id: second.id })
      const said = [
        'My name is Ada.',
        first.output_text.slice(0, 30),
        'I live in Oslo.',
        second.output_text.slice(0, 30),
        'Who am I?',
      ]
      let at = -1
      for (const text of said) {
        const next = sent().indexOf(JSON.stringify(text).slice(1, -1), at + 1)
        expect(next, text).toBeGreaterThan(at)
        at = next
      }
      expect(sent()).not.toContain('Be short.')
      expect(sent()).not.toContain('resp_')
      expect(sent()).not.toContain('previous_response_id')
      expect(third.status).toBe('completed')
    })

    test('a stream has one ID, which can be continued as soon as the stream reports completion', async () => {
      const { client } = connect(OpenAI, service)
      const stream = await client.responses.create({ model, input: 'The word is heron.', stream: true })
      const ids = new Set<string>()
      let next: Promise<{ status?: string | undefined }> | undefined
      for await (const event of stream) {
        if (!('response' in event)) continue
        ids.add(event.response.id)
        expect(event.response).toMatchObject({ store: true, model })
        if (event.type !== 'response.completed') continue
        next = client.responses.create({ model, input: 'Which word?', previous_response_id: event.response.id })
      }
      expect(ids.size).toBe(1)
      expect((await next)!.status).toBe('completed')
      expect(sent()).toContain('heron')
      const again = await client.responses.retrieve([...ids][0]!)
      expect(again.output_text).toContain('simulated')
    })

    test('an answer is retrieved unchanged, and not found after it is deleted', async () => {
      const { client } = connect(OpenAI, service)
      const given = await client.responses.create({ model, input: 'Keep this.', metadata: { topic: 'birds' } })
      const again = await client.responses.retrieve(given.id)
      expect(again.output).toEqual(given.output)
      expect(again.metadata).toEqual({ topic: 'birds' })
      expect(again.usage).toEqual(given.usage)
      expect(again.output_text).toBe(given.output_text)
      await client.responses.delete(given.id)
      await expect(client.responses.retrieve(given.id)).rejects.toMatchObject({
        status: 404,
        code: 'response_not_found',
      })
      await expect(client.responses.delete(given.id)).rejects.toMatchObject({ status: 404 })
      await expect(
        client.responses.create({ model, input: 'x', previous_response_id: given.id }),
      ).rejects.toMatchObject({ status: 400, code: 'previous_response_not_found', param: 'previous_response_id' })
    })

    test('the input is listed page by page, in either order', async () => {
      const { client } = connect(OpenAI, service)
      const input = Array.from({ length: 5 }, (_, n) => ({ role: 'user' as const, content: `line ${n}` }))
      const { id } = await client.responses.create({ model, input })
      const texts = async (order: 'asc' | 'desc') => {
        const items = await collect(client.responses.inputItems.list(id, { limit: 2, order }))
        expect(new Set(items.map((item) => item.id)).size).toBe(5)
        return items.map((item) => (item.type === 'message' ? (item.content[0] as { text: string }).text : ''))
      }
      const all = ['line 0', 'line 1', 'line 2', 'line 3', 'line 4']
      expect(await texts('asc')).toEqual(all)
      expect(await texts('desc')).toEqual(all.toReversed())
      const page = await client.responses.inputItems.list(id)
      expect(page.data).toHaveLength(5)
      expect(page.has_more).toBe(false)
    })

    test('an item of an answer or an input can be referenced by its ID', async () => {
      const { client } = connect(OpenAI, service)
      const first = await client.responses.create({ model, input: 'The bird is a wren.' })
      const [asked] = (await client.responses.inputItems.list(first.id)).data
      const answered = first.output[0]!
      const second = await client.responses.create({
        model,
        input: [
          { type: 'item_reference', id: asked!.id },
          { type: 'item_reference', id: answered.id! },
          { role: 'user', content: 'Which bird?' },
        ],
      })
      expect(second.status).toBe('completed')
      expect(sent()).toContain('The bird is a wren.')
      expect(sent()).not.toContain('item_reference')
      expect(sent()).not.toContain(asked!.id)
      const listed = (await client.responses.inputItems.list(second.id, { order: 'asc' })).data
      expect(listed.slice(0, 2).map(({ id }) => id)).toEqual([asked!.id, answered.id])
    })

    test('with store: false nothing is stored here or at the provider, non-streaming or streamed', async () => {
      const { client } = connect(OpenAI, service)
      const whole = await client.responses.create({ model, input: 'Forget me.', store: false })
      expect(whole).toMatchObject({ store: false })
      const events = await collect(
        await client.responses.create({ model, input: 'Forget me.', store: false, stream: true }),
      )
      const last = events.at(-1)!
      if (last.type !== 'response.completed') throw new Error('not complete')
      expect(last.response).toMatchObject({ store: false })
      if (format === 'openai-responses') expect(JSON.parse(sent())).toMatchObject({ store: false })
      for (const { id } of [whole, last.response]) {
        await expect(client.responses.retrieve(id)).rejects.toMatchObject({ status: 404 })
      }
    })

    test('an answer that is not stored can continue a stored one', async () => {
      const { client } = connect(OpenAI, service)
      const first = await client.responses.create({ model, input: 'The word is plover.' })
      const second = await client.responses.create({
        model,
        input: 'Which?',
        previous_response_id: first.id,
        store: false,
      })
      expect(sent()).toContain('plover')
      expect(second).toMatchObject({ store: false, previous_response_id: first.id })
    })

    test('a compacted conversation can be continued', async () => {
      const { client } = connect(OpenAI, service)
      const first = await client.responses.create({ model, input: 'The word is osprey.' })
      const compacted = await client.responses.compact({
        model,
        previous_response_id: first.id,
        input: 'And the number is 42.',
      })
      expect(compacted.object).toBe('response.compaction')
      expect(sent()).toContain('osprey')
      expect(compacted.output.map(({ type }) => type)).toEqual(['message', 'message', 'compaction'])
      expect(compacted.usage.total_tokens).toBeGreaterThan(0)
      const item = compacted.output.at(-1)!
      if (item.type !== 'compaction') throw new Error('no compaction')
      expect(item.encrypted_content).not.toContain('osprey')
      // The output is meant as input of the next request, but the SDK types it as output.
      const input = [...compacted.output, { role: 'user', content: 'Go on.' }] as unknown as string
      const next = await client.responses.create({ model, input })
      expect(next.status).toBe('completed')
      expect(sent()).toContain('Summary of the conversation so far')
      expect(sent()).toContain('simulated answer')
      expect(sent()).not.toContain(item.encrypted_content)
      const third = await client.responses.create({ model, input: 'More.', previous_response_id: next.id })
      expect(third.status).toBe('completed')
      expect(sent()).toContain('Summary of the conversation so far')
    })

    test('token counts include everything that the request continues', async () => {
      const { client } = connect(OpenAI, service)
      const first = await client.responses.create({ model, input: 'word '.repeat(2000) })
      const alone = await client.responses.inputTokens.count({ model, input: 'Go on.' })
      const continued = await client.responses.inputTokens.count({
        model,
        input: 'Go on.',
        previous_response_id: first.id,
      })
      expect(alone.object).toBe('response.input_tokens')
      expect(alone.input_tokens).toBeGreaterThan(0)
      expect(continued.input_tokens).toBeGreaterThan(alone.input_tokens + 2000)
    })

    test('only background responses can be canceled', async () => {
      const { client } = connect(OpenAI, service)
      const { id } = await client.responses.create({ model, input: 'Hello' })
      await expect(client.responses.cancel(id)).rejects.toMatchObject({ status: 400, code: 'invalid_request' })
      await expect(client.responses.cancel('resp_000000000000000000000000')).rejects.toMatchObject({ status: 404 })
      const background = await client.responses.create({ model, input: 'x', background: true })
      expect(await client.responses.cancel(background.id)).toMatchObject({ id: background.id, background: true })
      await expect(client.responses.retrieve(id, { stream: true })).rejects.toMatchObject({
        status: 400,
        param: 'stream',
      })
    })
  })
})
