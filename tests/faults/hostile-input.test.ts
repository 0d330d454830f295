import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { errorOf } from '../refusals.ts'
import type { Service } from '../service.ts'
import { readAnswer, Wire } from '../wire.ts'
import { head, HostileService } from './hostile-service.ts'

let hostile: HostileService
let service: Service

beforeAll(async () => {
  hostile = await HostileService.start()
  service = hostile.service
})
afterAll(() => service.stop())
afterEach(() => hostile.expectUnharmed())

describe('invalid bodies', () => {
  const deep = 10_000
  test.each([
    ['nothing', '', 'invalid_json'],
    ['half an object', '{"model": "svc-router/frontier"', 'invalid_json'],
    ['two objects', '{"model":"a"}{"model":"b"}', 'invalid_json'],
    ['a byte order mark', '\ufeff{"model":"a"}', 'invalid_json'],
    ['a list', '[]', 'invalid_json'],
    ['null', 'null', 'invalid_json'],
    ['a number', '1', 'invalid_json'],
    ['single quotes', "{'model': 'a'}", 'invalid_json'],
    ['a comma too many', '{"model": "a",}', 'invalid_json'],
    ['a comment', '{"model": "a" /* no */}', 'invalid_json'],
    ['NaN', '{"model": "svc-router/frontier", "temperature": NaN}', 'invalid_json'],
    ['a control character in a string', '{"model": "a\u0001"}', 'invalid_json'],
    ['an unknown escape', String.raw`{"model": "\x41"}`, 'invalid_json'],
    ['only closing brackets', ']]]]}}}}', 'invalid_json'],
    ['a form', 'model=svc-router%2Ffrontier', 'invalid_json'],
    ['a byte order mark', '\ufeff{"model":"svc-router/frontier"}', 'invalid_json'],
    ['10,000 lists within each other', `{"a":${'['.repeat(deep)}${']'.repeat(deep)}}`, 'invalid_request'],
    ['10,000 objects within each other', `{"a":${'{"a":'.repeat(deep)}1${'}'.repeat(deep)}}`, 'invalid_request'],
    ['10,000 brackets that never close', `{"a":${'['.repeat(deep)}`, 'invalid_request'],
    ['more than 300,000 pieces', `{"a":[${'0,'.repeat(300_001)}0]}`, 'invalid_request'],
    ['more than 60,000 members', `{"a":[${'{"a":1},'.repeat(60_001)}0]}`, 'invalid_request'],
    ['more than 10,000 names in one object', `{"a":{${names(10_001)}}}`, 'invalid_request'],
    ['more than 1,000 fields', `{${names(1_001)}}`, 'invalid_request'],
    ['a name of 300 bytes', `{"${'n'.repeat(300)}":1}`, 'invalid_request'],
    ['5 MiB of brackets', `{"a":[${'[],'.repeat(1_600_000)}[]]}`, 'invalid_request'],
    ['a field twice', '{"model":"svc-router/frontier","model":"team/other","messages":[]}', 'invalid_request'],
    ['a field twice, once with an escape', String.raw`{"model":"a","mod\u0065l":"b"}`, 'invalid_request'],
  ])('%s gets 400', async (_name, body, code) => {
    for (const path of ['/chat/completions', '/responses']) {
      const answer = await readAnswer(await service.post(path, body))
      expect(answer.status, answer.text).toBe(400)
      expect(errorOf(answer)).toMatchObject({ code, type: 'invalid_request_error', source: 'client' })
    }
  })

  test('the error names a byte order mark, because it is invisible', async () => {
    const answer = await readAnswer(await service.post('/responses', '\ufeff{"model":"a","input":"b"}'))
    expect(errorOf(answer).message).toContain('it starts with a byte order mark')
  })

  test.each([
    ['a lone continuation byte', [0x80]],
    ['a sequence that is too long', [0xc0, 0xaf]],
    ['half of a surrogate pair', [0xed, 0xa0, 0x80]],
    ['a byte that is never used', [0xff]],
    ['a truncated sequence', [0xe6, 0xbc]],
  ])('invalid UTF-8 (%s) gets 400', async (_name, bytes) => {
    const body = Buffer.concat([
      Buffer.from('{"model":"svc-router/frontier","messages":[{"role":"user","content":"'),
      Buffer.from(bytes),
      Buffer.from('"}]}'),
    ])
    const wire = await Wire.open(service.origin)
    await wire.write(hostile.sign(head(`content-length: ${body.length}\r\n`)))
    await wire.write(body)
    const answer = await wire.answer()
    expect(answer.status).toBe(400)
    expect(errorOf(answer).message).toContain('UTF-8')
    wire.destroy()
  })

  test.each(['gzip', 'br', 'deflate', 'zstd'])(
    'a body that is not in %s, as its content-encoding claims, gets 400',
    async (encoding) => {
      expect((await service.chat({}, { 'content-encoding': encoding })).status).toBe(400)
    },
  )

  test('names from object prototypes are treated like all others', async () => {
    const before = JSON.stringify(Object.prototype)
    const hostile =
      '{"__proto__":{"model":"x","isAdmin":true},"constructor":{"prototype":{"a":1}},"toString":1,"hasOwnProperty":2,'
    for (const [path, rest] of [
      ['/chat/completions', `"messages":[{"role":"user","content":"Hi","__proto__":{"role":"system"}}]`],
      ['/responses', '"input":"Hi"'],
    ] as const) {
      for (const model of ['svc-router/frontier', 'team/other']) {
        expect((await service.post(path, `${hostile}"model":"${model}",${rest}}`)).status).toBe(200)
      }
    }
    expect(JSON.stringify(Object.prototype)).toBe(before)
    expect(({} as Record<string, unknown>)['isAdmin']).toBeUndefined()
  })
})

describe('an error names a field of the wrong type (contract 2.22)', () => {
  const user = { role: 'user', content: 'Hi' }
  const chat = (extra: object): object => ({ model: 'svc-router/frontier', messages: [user], ...extra })
  const withMessage = (message: unknown): object => chat({ messages: [message] })
  const response = (extra: object): object => ({ model: 'svc-router/frontier', input: 'Hi', ...extra })
  const item = (given: unknown): object => response({ input: [given] })

  test.each([
    ['model', chat({ model: 1 })],
    ['model', chat({ model: null })],
    ['messages', chat({ messages: 'Hi' })],
    ['messages', chat({ messages: null })],
    ['messages[0]', withMessage('Hi')],
    ['messages[0]', withMessage(null)],
    ['messages[0].role', withMessage({ content: 'Hi' })],
    ['messages[0].role', withMessage({ role: 1, content: 'Hi' })],
    ['messages[0].role', withMessage({ role: 'emperor', content: 'Hi' })],
    ['messages[0].content', withMessage({ role: 'user', content: 1 })],
    ['messages[0].content', withMessage({ role: 'user', content: { type: 'text' } })],
    ['messages[0].content[0]', withMessage({ role: 'user', content: [1] })],
    ['messages[0].content[0].text', withMessage({ role: 'user', content: [{ type: 'text', text: 1 }] })],
    [
      'messages[0].content[0].image_url.url',
      withMessage({ role: 'user', content: [{ type: 'image_url', image_url: {} }] }),
    ],
    ['messages[0].content[0].image_url', withMessage({ role: 'user', content: [{ type: 'image_url', image_url: 1 }] })],
    [
      'messages[0].content[0].input_audio',
      withMessage({ role: 'user', content: [{ type: 'input_audio', input_audio: 1 }] }),
    ],
    [
      'messages[0].content[0].file.file_data',
      withMessage({ role: 'user', content: [{ type: 'file', file: { file_data: 1 } }] }),
    ],
    ['messages[0].name', withMessage({ role: 'user', content: 'Hi', name: 1 })],
    ['messages[0].refusal', withMessage({ role: 'assistant', refusal: 1 })],
    ['messages[0].tool_calls', withMessage({ role: 'assistant', tool_calls: 'x' })],
    ['messages[0].tool_calls[0]', withMessage({ role: 'assistant', tool_calls: [1] })],
    ['messages[0].tool_calls[0].function', withMessage({ role: 'assistant', tool_calls: [{ id: 'a' }] })],
    [
      'messages[0].tool_calls[0].function.name',
      withMessage({ role: 'assistant', tool_calls: [{ id: 'a', function: { name: 1 } }] }),
    ],
    ['messages[0].tool_call_id', withMessage({ role: 'tool', content: 'x' })],
    ['stream', chat({ stream: 'yes' })],
    ['stream_options', chat({ stream_options: true })],
    ['tools', chat({ tools: {} })],
    ['tools[0]', chat({ tools: ['x'] })],
    ['tools[0].type', chat({ tools: [{ type: 1 }] })],
    ['tools[0].function.name', chat({ tools: [{ type: 'function', function: {} }] })],
    ['tools[0].function.parameters', chat({ tools: [{ type: 'function', function: { name: 'f', parameters: 1 } }] })],
    ['tools[0].function.strict', chat({ tools: [{ type: 'function', function: { name: 'f', strict: 1 } }] })],
    ['tool_choice', chat({ tool_choice: 1 })],
    ['parallel_tool_calls', chat({ parallel_tool_calls: 'yes' })],
    ['response_format', chat({ response_format: 'json' })],
    [
      'response_format.json_schema.schema',
      chat({ response_format: { type: 'json_schema', json_schema: { name: 'a', schema: 1 } } }),
    ],
    ['temperature', chat({ temperature: 'hot' })],
    ['top_p', chat({ top_p: [] })],
    ['n', chat({ n: '2' })],
    ['seed', chat({ seed: {} })],
    ['max_tokens', chat({ max_tokens: '10' })],
    ['max_completion_tokens', chat({ max_completion_tokens: '10' })],
    ['stop', chat({ stop: 1 })],
    ['stop', chat({ stop: [1] })],
    ['logprobs', chat({ logprobs: 1 })],
    ['top_logprobs', chat({ top_logprobs: '1' })],
    ['user', chat({ user: 1 })],
    ['metadata', chat({ metadata: 'x' })],
    ['reasoning_effort', chat({ reasoning_effort: 1 })],
  ])('chat: %s', async (param, body) => {
    await expectNamed('/chat/completions', param, body)
  })

  test.each([
    ['model', response({ model: [] })],
    ['input', response({ input: 1 })],
    ['input', response({ input: {} })],
    ['input[0]', item('Hi')],
    ['input[0].type', item({ type: 1 })],
    ['input[0].role', item({ type: 'message', content: 'Hi' })],
    ['input[0].role', item({ type: 'message', role: 'emperor', content: 'Hi' })],
    ['input[0].content', item({ role: 'user', content: 1 })],
    ['input[0].content[0].text', item({ role: 'user', content: [{ type: 'input_text', text: {} }] })],
    ['input[0].content[0].image_url', item({ role: 'user', content: [{ type: 'input_image', image_url: 1 }] })],
    ['input[0].call_id', item({ type: 'function_call', name: 'f' })],
    ['input[0].name', item({ type: 'function_call', call_id: 'a' })],
    ['input[0].arguments', item({ type: 'function_call', call_id: 'a', name: 'f', arguments: {} })],
    ['input[0].call_id', item({ type: 'function_call_output', output: 'x' })],
    ['input[0].output', item({ type: 'function_call_output', call_id: 'a', output: 1 })],
    ['input[0].id', item({ type: 'item_reference', id: 1 })],
    ['input[0].tools', item({ type: 'additional_tools', tools: 1 })],
    ['stream', response({ stream: 1 })],
    ['tools', response({ tools: 'x' })],
    ['tools[0]', response({ tools: [null] })],
    ['tools[0].name', response({ tools: [{ type: 'function' }] })],
    ['tools[0].tools', response({ tools: [{ type: 'namespace', name: 'n', tools: 1 }] })],
    ['tool_choice', response({ tool_choice: 1 })],
    ['instructions', response({ instructions: 1 })],
    ['include', response({ include: 'x' })],
    ['reasoning', response({ reasoning: 'high' })],
    ['reasoning.effort', response({ reasoning: { effort: 1 } })],
    ['text', response({ text: 'plain' })],
    ['text.format', response({ text: { format: 'json' } })],
    ['text.verbosity', response({ text: { verbosity: 1 } })],
    ['store', response({ store: 'no' })],
    ['previous_response_id', response({ previous_response_id: 1 })],
    ['max_output_tokens', response({ max_output_tokens: '1' })],
    ['metadata', response({ metadata: [] })],
    ['truncation', response({ truncation: 1 })],
  ])('responses: %s', async (param, body) => {
    await expectNamed('/responses', param, body)
  })

  async function expectNamed(path: string, param: string, body: object): Promise<void> {
    const answer = await readAnswer(await service.post(path, body))
    expect(answer.status, answer.text).toBe(400)
    expect(errorOf(answer)).toMatchObject({ code: 'invalid_request', param })
    expect(errorOf(answer).message).toContain(param)
  }
})

function names(count: number): string {
  return Array.from({ length: count }, (_, index) => `"n${index}":1`).join(',')
}
