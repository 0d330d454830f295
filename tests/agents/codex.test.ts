import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { citySchema } from './agent-home.ts'
import { CodexHome, weatherServer } from './codex-home.ts'
import { OneBackend } from './one-backend.ts'
import type { Finished } from './program.ts'
import { RunningService } from './running-service.ts'

beforeAll(() => void CodexHome.install())

let home: CodexHome
beforeEach(() => {
  home = new CodexHome()
})
afterEach(() => home[Symbol.dispose]())

describe.each([
  ['openai-chat', 'translated', 'custom'],
  ['openai-responses', 'relayed', 'openai'],
] as const)('Codex with a backend of format %s', (format, lane, preset) => {
  let backend: OneBackend
  beforeEach(async () => {
    backend = await OneBackend.start(format, preset)
    home.configure(backend.service)
  })
  afterEach(() => backend[Symbol.asyncDispose]())

  function codex(...args: readonly string[]): Promise<Finished> {
    return home.run(args, backend.service.key)
  }

  test(`finishes a prompt, ${lane}, streamed, served and charged once`, async () => {
    const { code, stdout, stderr } = await codex('Say hello.')
    expect(code, stderr).toBe(0)
    expect(stdout.trim()).toBe('This is a simulated answer from alpha. You said: "Say hello.".')
    expect(stderr).not.toMatch(/ERROR|Reconnecting/)
    await backend.expectServed(1, 'openai-responses')
  })

  test('calls a tool of an MCP server, which it declares in a namespace, and answers with its result', async () => {
    home.configure(backend.service, { end: weatherServer })
    const { code, stdout, stderr } = await codex('What is the weather in Oslo?')
    expect(code, stderr).toBe(0)
    expect(stderr).toContain('weather/get_weather (completed)')
    expect(stdout).toContain('It is 7 degrees in Oslo.')
    await backend.expectServed(2, 'openai-responses')
  })

  test('continues a stored conversation', async () => {
    expect((await codex('Say hello.')).code).toBe(0)
    const { code, stdout, stderr } = await codex('resume', '--last', 'And again.')
    expect(code, stderr).toBe(0)
    expect(stdout).toContain('You said: "And again.".')
    expect(backend.lastBody()).toContain('This is a simulated answer from alpha.')
    await backend.expectServed(2, 'openai-responses')
  })

  test('returns an object that matches a schema', async () => {
    const path = join(home.folder, 'schema.json')
    writeFileSync(path, JSON.stringify(citySchema))
    const { code, stdout, stderr } = await codex('--output-schema', path, 'The weather?')
    expect(code, stderr).toBe(0)
    expect(JSON.parse(stdout)).toEqual({ city: 'simulated by alpha', degrees: expect.any(Number) as number })
    await backend.expectServed(1, 'openai-responses')
  })

  test('attaches an image', async () => {
    const { code, stdout, stderr } = await codex('What is this?', '-i', home.putPixel())
    expect(code, stderr).toBe(0)
    expect(stdout).toContain('I received 1 image.')
    await backend.expectServed(1, 'openai-responses')
  })

  test('reads the model list that the service provides for it and prints no warning about the model', async () => {
    await home.configureWithModels(backend.service)
    const { code, stdout, stderr } = await codex('Say hello.')
    expect(code, stderr).toBe(0)
    expect(stdout).toContain('This is a simulated answer from alpha.')
    expect(stderr).not.toContain('Model metadata')
    await backend.expectServed(1, 'openai-responses')
  })

  test('does not accept an incomplete answer: it sends two more requests, then reports an error', async () => {
    backend.provider.script([{ do: 'cut', afterEvents: 9, repeat: true }])
    const { code, stdout, stderr } = await codex('Say hello.')
    expect(code).toBe(1)
    expect(stdout.trim()).toBe('')
    expect(stderr).toContain('The response ended before it was complete')
    expect(await backend.outcomes()).toEqual(['upstream_broken', 'upstream_broken', 'upstream_broken'])
  })

  test('answers if only the first answer was incomplete', async () => {
    backend.provider.script([{ do: 'cut', afterEvents: 9 }])
    const { code, stdout } = await codex('Say hello.')
    expect(code).toBe(0)
    expect(stdout.trim()).toBe('This is a simulated answer from alpha. You said: "Say hello.".')
    expect(await backend.outcomes()).toEqual(['upstream_broken', undefined])
  })
})

test('Codex finishes a prompt with an unconfigured service, and without a key prints where the key is', async () => {
  await using service = await RunningService.start()
  home.configure(service)
  const answered = await home.run(['Say hello.'], service.key)
  expect(answered.code, answered.stderr).toBe(0)
  expect(answered.stdout).toContain('This is a simulated answer from simulated-alpha.')
  const { code, stderr } = await home.run(['Say hello.'], undefined)
  expect(code).toBe(1)
  expect(stderr).toContain('Your first key is in the file first-key')
  expect(await service.requests()).toHaveLength(1)
})
