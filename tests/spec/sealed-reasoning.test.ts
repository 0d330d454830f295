import { describe, expect, test } from 'vitest'
import type { JsonObject } from '../../src/domain/json.ts'
import { jsonUpToDone } from '../faults/event-stream.ts'
import type { Service, ServiceOptions } from '../service.ts'
import { shareServices } from '../shared-service.ts'

const share = shareServices()
let service: Service

const asked = { reasoning: { effort: 'low' }, include: ['reasoning.encrypted_content'], store: false }
const user = { role: 'user', content: 'Say hello.' }

async function start(options: ServiceOptions = {}): Promise<void> {
  service = await share({ formats: ['openai-responses', 'openai-responses'], ...options })
}

/** Sends one turn, which must succeed. Returns the output and the backend that answered. */
async function take(input: unknown, stream: boolean): Promise<{ output: JsonObject[]; upstream: string | null }> {
  const response = await service.responses({ ...asked, input, stream })
  const text = await response.text()
  expect(response.status, text).toBe(200)
  const whole = stream ? jsonUpToDone(text).at(-1)!.response! : (JSON.parse(text) as object)
  const { output } = whole as unknown as { output: JsonObject[] }
  return { output, upstream: response.headers.get('x-svc-router-upstream') }
}

function sealedOf(output: readonly JsonObject[]): string {
  const [item] = output.filter(({ type }) => type === 'reasoning')
  return item?.['encrypted_content'] as string
}

/** The items in the latest request to a provider. */
function sentTo(index: number): JsonObject[] {
  const { body } = service.providers[index]!.captured().at(-1)!
  return (JSON.parse(body) as { input: JsonObject[] }).input
}

describe.each([
  ['streamed', true],
  ['whole', false],
])('pitfall 14: encrypted reasoning, %s', (_, stream) => {
  test('it returns unchanged to the backend that issued it', async () => {
    await start()
    const { output } = await take([user], stream)
    expect(sealedOf(output)).toMatch(/^svcr1\.[\w-]{12}\.[\w=+/]+$/)
    await take([user, ...output, user], stream)
    const [, reasoning, message] = sentTo(0)
    expect(Buffer.from(reasoning!['encrypted_content'] as string, 'base64').toString()).toMatch(/^simulated by alpha /)
    expect({ ...reasoning, encrypted_content: '' }).toEqual({ ...output[0], encrypted_content: '' })
    expect(message).toEqual(output[1])
  })

  test('it is omitted if another backend answers, and everything else is unchanged', async () => {
    await start()
    const { output } = await take([user], stream)
    service.providers[0]!.script([{ do: 'status', status: 503 }])
    const second = await take([user, ...output, user], stream)
    expect(second.upstream).toBe('beta')
    expect(sentTo(1)).toEqual([user, output[1], user])
    expect(service.providers[1]!.counts().requests).toBe(1)
    // The conversation contains reasoning of both. Each gets back only its own.
    await take([user, ...output, user, ...second.output, user], stream)
    expect(sentTo(0).filter(({ type }) => type === 'reasoning')).toHaveLength(1)
  })

  test('reasoning that svc-router did not mark is omitted without an error', async () => {
    await start()
    const made = ['gAAAAAB', 'svcr1.aaaaaaaaaaaa.gAAA', 'svcr1.', 'svcr1..x', '']
    const items = made.map((sealed) => ({ type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: sealed }))
    const compaction = { type: 'compaction', id: 'cmp_1', encrypted_content: 'gAAA' }
    await take([user, ...items, compaction, user], stream)
    expect(sentTo(0)).toMatchObject([user, user])
  })

  test('its issuer is marked only by a digest, which is useless to other accounts', async () => {
    const credential = 'up-made-up-credential'
    await start()
    await service.connectOwn(credential)
    const { output, upstream } = await take([user], stream)
    expect(upstream).toMatch(/^ups_/)
    const sealed = sealedOf(output)
    for (const part of [credential, Buffer.from(credential).toString('base64'), upstream!, service.account.id]) {
      expect(sealed).not.toContain(part)
    }
    await take([user, ...output, user], stream)
    expect(sentTo(0).filter(({ type }) => type === 'reasoning')).toHaveLength(1)
  })
})

test('reasoning in a stream that svc-router started is still marked, and returns', async () => {
  await start({ settings: { keep_alive: '100ms' } })
  service.providers[0]!.script([{ do: 'slow_first', ms: 400 }])
  const { output } = await take([user], true)
  expect(sealedOf(output)).toMatch(/^svcr1\./)
  await take([user, ...output, user], true)
  expect(sentTo(0).filter(({ type }) => type === 'reasoning')).toHaveLength(1)
})

test('an endpoint that supports only functions gets its own reasoning back, with a namespace in the request', async () => {
  await start()
  const tools = [{ type: 'namespace', name: 'n', description: 'd', tools: [{ type: 'function', name: 'f' }] }]
  const turn = async (input: unknown): Promise<JsonObject[]> => {
    const response = await service.responses({ ...asked, input, tools })
    expect(response.status).toBe(200)
    return ((await response.json()) as { output: JsonObject[] }).output
  }
  const output = await turn([user])
  expect(sealedOf(output)).toMatch(/^svcr1\./)
  await turn([user, ...output, user])
  expect(sentTo(0).map(({ type }) => type)).toEqual(['message', 'reasoning', 'message', 'message'])
})

test('a request without encrypted reasoning reaches the backend byte for byte', async () => {
  await start()
  const text =
    '{"model":"svc-router/frontier","input" : [ {"role":"user","content":"encrypted_content \\u00fc","n":1.50} ],"store":false}'
  expect((await service.post('/responses', text)).status).toBe(200)
  expect(service.providers[0]!.captured().at(-1)!.body).toBe(text.replace('svc-router/frontier', 'model-of-alpha'))
})

describe.each([
  ['streamed', true],
  ['whole', false],
])('thinking signatures on messages, %s', (_, stream) => {
  const asked = { model: 'svc-router/frontier', max_tokens: 4_000, thinking: { type: 'enabled', budget_tokens: 2_000 } }

  /** Sends one turn, which must succeed. Returns its blocks. */
  async function say(messages: readonly object[]): Promise<JsonObject[]> {
    const response = await service.post('/messages', { ...asked, messages, stream })
    const text = await response.text()
    expect(response.status, text).toBe(200)
    if (!stream) return (JSON.parse(text) as { content: JsonObject[] }).content
    const signature = /"signature_delta","signature":"([^"]*)"/.exec(text)![1]!
    return [
      { type: 'thinking', thinking: 'Hm.', signature },
      { type: 'text', text: 'Said.' },
    ]
  }

  const blocksSentTo = (index: number): unknown[] => {
    const { body } = service.providers[index]!.captured().at(-1)!
    const { messages } = JSON.parse(body) as { messages: { role: string; content: JsonObject[] }[] }
    return messages.filter(({ role }) => role === 'assistant').map(({ content }) => content.map(({ type }) => type))
  }

  test('they return to the backend that issued them, and to no other', async () => {
    await start({ formats: ['anthropic-messages', 'anthropic-messages'] })
    const content = await say([user])
    expect(content[0]!['signature']).toMatch(/^svcr1\.[\w-]{12}\.[\w=+/]+$/)
    const history = [user, { role: 'assistant', content }, user]
    await say(history)
    expect(blocksSentTo(0)).toEqual([['thinking', 'text']])
    service.providers[0]!.script([{ do: 'status', status: 503 }])
    await say(history)
    expect(blocksSentTo(1)).toEqual([['text']])
    await say([user, { role: 'assistant', content: [{ type: 'thinking', thinking: 'x', signature: 'EqoB' }] }, user])
    expect(blocksSentTo(0)).toEqual([])
  })
})
