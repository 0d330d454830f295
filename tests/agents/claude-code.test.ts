import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { ClaudeHome, type ClaudeOptions } from './claude-home.ts'
import { CountingProxy } from './counting-proxy.ts'
import { OneBackend } from './one-backend.ts'
import type { Finished } from './program.ts'

beforeAll(() => void ClaudeHome.install())

let home: ClaudeHome
beforeEach(() => {
  home = new ClaudeHome()
})
afterEach(() => home[Symbol.dispose]())

describe.each([
  ['openai-chat', 'translated', 4, 18],
  ['openai-responses', 'translated', 8, 24],
  ['anthropic-messages', 'relayed', 4, 9],
] as const)('Claude Code with a backend of format %s', (format, lane, inReasoning, inText) => {
  let backend: OneBackend
  beforeEach(async () => {
    backend = await OneBackend.start(format)
  })
  afterEach(() => backend[Symbol.asyncDispose]())

  function claude(prompt: string, options?: ClaudeOptions): Promise<Finished> {
    return home.run(backend.service, backend.service.key, prompt, options)
  }

  test(`finishes a prompt, ${lane}, served and charged once`, async () => {
    const { code, stdout, stderr } = await claude('Say hello.')
    expect(code, stderr).toBe(0)
    expect(stdout).toContain('This is a simulated answer from alpha.')
    await backend.expectServed(1, 'anthropic-messages')
  })

  test('shows the words of an answer as they arrive', async () => {
    const args = ['--output-format', 'stream-json', '--verbose', '--include-partial-messages']
    const { code, stdout, stderr } = await claude('Say hello.', { args })
    expect(code, stderr).toBe(0)
    const events = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as StreamedLine)
    const words = events.flatMap(({ event }) => (event?.delta?.type === 'text_delta' ? [event.delta.text] : []))
    expect(words.length).toBeGreaterThan(5)
    expect(words.join('')).toContain('This is a simulated answer from alpha.')
    expect(events.at(-1)).toMatchObject({ type: 'result', is_error: false, result: words.join('') })
    await backend.expectServed(1, 'anthropic-messages')
  })

  test('calls a tool of an MCP server and answers with its result', async () => {
    const { code, stdout, stderr } = await claude('What is the weather in Oslo?', { args: home.weatherServer() })
    expect(code, stderr).toBe(0)
    expect(stdout).toContain('It is 7 degrees in Oslo.')
    await backend.expectServed(2, 'anthropic-messages')
  })

  test('attaches an image that a prompt names', async () => {
    home.putPixel()
    const { code, stdout, stderr } = await claude('What is in @pixel.png?')
    expect(code, stderr).toBe(0)
    expect(stdout).toContain('I received 1 image.')
    await backend.expectServed(1, 'anthropic-messages')
  })

  test('continues a stored conversation', async () => {
    expect((await claude('Say hello.')).code).toBe(0)
    const { code, stdout, stderr } = await claude('And again.', { args: ['--continue'] })
    expect(code, stderr).toBe(0)
    expect(stdout).toContain('This is a simulated answer from alpha.')
    expect(backend.lastBody()).toContain('This is a simulated answer from alpha.')
    await backend.expectServed(2, 'anthropic-messages')
  })

  test('does not accept an answer that ends during its reasoning: it sends two more requests without streaming, then reports an error', async () => {
    backend.provider.script([{ do: 'cut', afterEvents: inReasoning, repeat: true }])
    const { code, stdout } = await claude('Say hello.')
    expect(code).toBe(1)
    expect(stdout).toMatch(/^API Error: 503 No backend of svc-router\/frontier could answer right now\./)
    expect(await backend.outcomes()).toEqual(['upstream_broken', 'server_is_overloaded', 'server_is_overloaded'])
  })

  test('does not accept an answer that ends during its text: it sends three more requests, then reports an error', async () => {
    backend.provider.script([{ do: 'cut', afterEvents: inText, repeat: true }])
    const { code, stdout } = await claude('Say hello.')
    expect(code).toBe(1)
    expect(stdout.trim()).toBe('API Error: Server error mid-response. The response above may be incomplete.')
    expect(await backend.outcomes()).toEqual(Array.from({ length: 4 }, () => 'upstream_broken'))
  })

  test('answers if only the first answer was incomplete', async () => {
    backend.provider.script([{ do: 'cut', afterEvents: inText }])
    const { code, stdout } = await claude('Say hello.')
    expect(code).toBe(0)
    expect(stdout.match(/This is a simulated answer from alpha\./g)).toHaveLength(1)
    expect(await backend.outcomes()).toEqual(['upstream_broken', undefined])
  })
})

test('Claude Code blames the model if its address ends in /v1, as docs/clients.md says', async () => {
  await using backend = await OneBackend.start('openai-chat')
  await using proxy = await CountingProxy.start(backend.service.origin)
  const { code, stdout, stderr } = await home.run({ origin: proxy.baseUrl }, backend.service.key, 'Say hello.')
  expect(code, stderr).toBe(1)
  expect(stdout).toContain("There's an issue with the selected model")
  expect(new Set(proxy.statuses)).toEqual(new Set([404]))
})

interface StreamedLine {
  readonly event?: { readonly delta?: { readonly type: string; readonly text: string } }
}
