import { describe, expect, test } from 'vitest'
import type { Service } from '../service.ts'
import { shareService } from '../shared-service.ts'

const service = shareService({
  formats: ['anthropic-messages'],
  facts: { alpha: { model: 'claude-opus-5' } },
  settings: {
    profiles: {
      'svc-router/frontier': { backends: ['alpha'] },
      'my/unmarked': { backends: ['alpha'], cache: { marks: 'off' } },
      'svc-router/fusion': { backends: ['alpha'], cache: { marks: 'off' } },
    },
  },
})
const tools = [{ type: 'function', function: { name: 'look', parameters: { type: 'object', properties: {} } } }]
const namedTool = (name: string) => [{ type: 'function', function: { name, parameters: { type: 'object' } } }]
const extractTools = namedTool('extract')
const chatTools = namedTool('chat')
/** Long enough to be a turn of a session. */
const system = { role: 'system', content: 'You answer questions about a long story. '.repeat(100) }

/** Asks through chat completions, and returns the bodies that the provider received for it. */
async function ask(running: Service, model: string, messages: readonly object[], more: object = {}): Promise<string[]> {
  const [provider] = running.providers
  const before = provider!.captured().length
  const response = await running.post('/chat/completions', { model, messages, ...more })
  expect(response.status, await response.text()).toBe(200)
  const sent = provider!.captured().slice(before)
  return sent.map(({ body }) => body)
}

const countMarks = (bodies: readonly string[]): number[] =>
  bodies.map((body) => body.split('"cache_control"').length - 1)

describe('marks for the cache of a provider', () => {
  test('are added from the second turn of a conversation without tools on', async () => {
    const running = await service()
    const question = [system, { role: 'user', content: 'Who is the hero?' }]
    expect(countMarks(await ask(running, 'svc-router/frontier', question))).toEqual([0])
    const later = [...question, { role: 'assistant', content: 'Nobody.' }, { role: 'user', content: 'And then?' }]
    expect(countMarks(await ask(running, 'svc-router/frontier', later))).toEqual([3])
  })

  test('are added to the first turn with tools in a session, unless the profile turns them off', async () => {
    const running = await service()
    const question = [system, { role: 'user', content: 'Look for the hero.' }]
    const more = { tools, session_id: 'my session' }
    expect(countMarks(await ask(running, 'svc-router/frontier', question, more))).toEqual([3])
    expect(countMarks(await ask(running, 'my/unmarked', question, more))).toEqual([0])
  })

  test('are not added to requests with tools that nothing follows, even with a key for the cache', async () => {
    const running = await service()
    for (const key of ['mine', 'mine', undefined]) {
      const question = [system, { role: 'user', content: `Look for the hero. ${Math.random()}` }]
      const more = { tools: extractTools, prompt_cache_key: key }
      expect(countMarks(await ask(running, 'svc-router/frontier', question, more))).toEqual([0])
    }
  })

  test('are added to the first turn if earlier conversations with the same tools went on', async () => {
    const running = await service()
    const first = [system, { role: 'user', content: 'Look for the villain.' }]
    const second = [...first, { role: 'assistant', content: 'Nobody.' }, { role: 'user', content: 'And then?' }]
    const counts = []
    for (const messages of [first, second, [system, { role: 'user', content: 'Look for the castle.' }]])
      counts.push(...countMarks(await ask(running, 'svc-router/frontier', messages, { tools: chatTools })))
    expect(counts).toEqual([0, 4, 3])
  })

  test.each([
    ['on a block that cannot have one', 'messages.1.content.0.thinking.cache_control: Extra inputs are not permitted'],
    ['with an unknown member', 'messages.0.content.0.text.cache_control.ephemeral.own: Extra inputs are not permitted'],
  ])('are added for everybody after a request with its own mark %s was rejected', async (where, message) => {
    const running = await service()
    const other = await running.addAccount('other', 'max')
    const error = { type: 'error', error: { type: 'invalid_request_error', message } }
    running.providers[0]!.script([
      { do: 'status', status: 400, body: JSON.stringify(error) },
      { do: 'answer', text: 'Fine.', repeat: true },
    ])
    const mark = { type: 'ephemeral', own: 1 }
    const content = [{ type: 'text', text: `A question ${where}.`, cache_control: mark }]
    const ownTools = [{ name: 'look', input_schema: { type: 'object' } }]
    const messages = [{ role: 'user', content }]
    const body = { model: 'svc-router/frontier', max_tokens: 9, system: system.content, tools: ownTools, messages }
    const session = { 'anthropic-version': '2023-06-01', 'x-session-id': `before it ${where}` }
    const rejected = await running.post('/messages', body, session)
    expect(rejected.status, await rejected.text()).toBe(200)
    const question = [system, { role: 'user', content: 'Look for the hero.' }]
    for (const key of [running.key, other.key]) {
      const before = running.providers[0]!.captured().length
      const headers = { authorization: `Bearer ${key}` }
      const more = { tools, session_id: `after it ${where}` }
      await (
        await running.post('/chat/completions', { model: 'svc-router/frontier', messages: question, ...more }, headers)
      ).text()
      expect(
        countMarks(
          running.providers[0]!.captured()
            .slice(before)
            .map((sent) => sent.body),
        ),
      ).toEqual([3])
    }
  })

  test('are not added to the calls of a fusion whose profile turns them off', async () => {
    const running = await service()
    const counts = countMarks(
      await ask(running, 'svc-router/fusion', [system, { role: 'user', content: 'Why?' }], { tools }),
    )
    expect(counts.length).toBeGreaterThan(0)
    expect(Math.max(...counts)).toBe(0)
  })
})
