import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import type { AnswerEvent, Conversation } from '../../src/domain/conversation.ts'
import { CodexHome, withoutSandbox, patch, weatherServer } from './codex-home.ts'
import { callOf, imagesIn, textAnswer } from './scripted-model.ts'
import { ScriptedService } from './scripted-service.ts'

beforeAll(() => void CodexHome.install())

const thought: AnswerEvent[] = [
  { type: 'reasoning', text: '**Thinking** about it.' },
  { type: 'reasoning_end', sealed: 'gAAAA-sealed-by-the-backend' },
]

describe.each([
  { name: 'chat completions backend', format: 'openai-chat', preset: 'custom', supportsCodexTools: false },
  {
    name: 'responses backend that supports only functions',
    format: 'openai-responses',
    preset: 'custom',
    supportsCodexTools: false,
  },
  {
    name: 'responses backend that supports all tools',
    format: 'openai-responses',
    preset: 'openai',
    supportsCodexTools: true,
  },
] as const)('Codex with a $name', ({ format, preset, supportsCodexTools }) => {
  test('calls a tool of an MCP server in its namespace', async () => {
    using home = new CodexHome()
    await using scripted = await ScriptedService.start(
      format,
      (conversation, turn) =>
        turn === 1
          ? callOf(conversation, 'get_weather', { city: 'Oslo' })
          : textAnswer(`Seen: ${resultIn(conversation)}`),
      preset,
    )
    const { service, model } = scripted
    home.configure(service, { end: weatherServer })
    const { code, stdout, stderr } = await home.run(['What is the weather?'], service.key)
    expect(code, stderr).toBe(0)
    expect(stderr).toContain('weather/get_weather (completed)')
    expect(stdout).toContain('It is 7 degrees in Oslo.')
    expect(JSON.stringify(model.bodies[0]!['tools']).includes('"namespace"')).toBe(supportsCodexTools)
  })

  test('patches a file with a custom tool if the model list offers that tool', async () => {
    using home = new CodexHome()
    await using scripted = await ScriptedService.start(
      format,
      (conversation, turn) => (turn === 1 ? callOf(conversation, 'apply_patch', patch) : textAnswer('Done.')),
      preset,
    )
    const { service, model } = scripted
    await home.configureWithModels(service)
    const { code, stdout, stderr } = await home.run(['Make the file.'], service.key, withoutSandbox)
    expect(code, stderr).toBe(0)
    expect(stdout).toContain('Done.')
    expect(stderr).not.toContain('incompatible payload')
    expect(readFileSync(join(home.work, 'made.txt'), 'utf8')).toBe('made by Codex\n')
    expect(JSON.stringify(model.bodies[0]!['tools']).includes('"custom"')).toBe(supportsCodexTools)
    expect(model.bodies).toHaveLength(2)
  })

  test('reads an image with its tool, and the model receives it as an image', async () => {
    using home = new CodexHome()
    const path = home.putPixel()
    await using scripted = await ScriptedService.start(
      format,
      (conversation, turn) => (turn === 1 ? callOf(conversation, 'view_image', { path }) : textAnswer('I can see it.')),
      preset,
    )
    const { service, model } = scripted
    await home.configureWithModels(service)
    const { code, stdout, stderr } = await home.run(['Look at pixel.png.'], service.key, withoutSandbox)
    expect(code, stderr).toBe(0)
    expect(stdout).toContain('I can see it.')
    expect(imagesIn(model.bodies[1]!)).toBe(1)
  })

  test('enables web search, and only a backend that supports it receives the tool', async () => {
    using home = new CodexHome()
    await using scripted = await ScriptedService.start(format, () => textAnswer('Hello.'), preset)
    const { service, model } = scripted
    home.configure(service)
    const { code, stdout, stderr } = await home.run(['Say hello.'], service.key)
    expect(code, stderr).toBe(0)
    expect(stdout).toContain('Hello.')
    expect(JSON.stringify(model.bodies[0]!['tools']).includes('"web_search"')).toBe(supportsCodexTools)
  })

  test('returns encrypted reasoning in a tool loop and after a restart, exactly as the backend encrypted it', async () => {
    using home = new CodexHome()
    await using scripted = await ScriptedService.start(
      format,
      (conversation, turn) => [
        ...thought,
        ...(turn === 1 ? callOf(conversation, 'get_weather', { city: 'Oslo' }) : textAnswer(`Turn ${turn}.`)),
      ],
      preset,
    )
    const { service, model } = scripted
    await home.configureWithModels(service, weatherServer)
    const first = await home.run(['What is the weather?'], service.key)
    expect(first.code, first.stderr).toBe(0)
    const second = await home.run(['resume', '--last', 'And again.'], service.key)
    expect(second.code, second.stderr).toBe(0)
    expect(second.stdout).toContain('Turn 3.')
    expect(model.bodies).toHaveLength(3)
    const sealed = model.bodies.map((body) => JSON.stringify(body).match(/gAAAA-sealed-by-the-backend/g)?.length ?? 0)
    expect(sealed).toEqual(format === 'openai-responses' ? [0, 1, 2] : [0, 0, 0])
    expect(JSON.stringify(model.bodies)).not.toContain('svcr1.')
    expect(JSON.stringify(model.bodies[2])).toContain('It is 7 degrees in Oslo.')
  })
})

/** The text of the latest tool result. */
function resultIn({ turns }: Conversation): string {
  const result = turns.findLast(({ role }) => role === 'tool')
  return result?.parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join(' ') ?? ''
}
