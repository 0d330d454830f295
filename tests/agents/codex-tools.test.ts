import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import type { AnswerEvent, Conversation } from '../../src/domain/conversation.ts'
import { CodexHome, inItsFolder, patch, weatherServer } from './codex-home.ts'
import { callOf, imagesIn, say } from './scripted-model.ts'
import { ScriptedService } from './scripted-service.ts'

beforeAll(() => void CodexHome.install())

const thought: AnswerEvent[] = [
  { type: 'reasoning', text: '**Thinking** about it.' },
  { type: 'reasoning_end', sealed: 'gAAAA-sealed-by-the-backend' },
]

describe.each([
  { name: 'chat completions', format: 'openai-chat', preset: 'custom', knows: false },
  { name: 'responses and knows only functions', format: 'openai-responses', preset: 'custom', knows: false },
  { name: 'responses with all of its tools', format: 'openai-responses', preset: 'openai', knows: true },
] as const)('Codex, with a backend that speaks $name', ({ format, preset, knows }) => {
  test('calls a tool of a tool server in its namespace', async () => {
    using home = new CodexHome()
    await using played = await ScriptedService.start(
      format,
      (conversation, turn) =>
        turn === 1 ? callOf(conversation, 'get_weather', { city: 'Oslo' }) : say(`Seen: ${resultIn(conversation)}`),
      preset,
    )
    const { service, model } = played
    home.configure(service, { end: weatherServer })
    const { code, stdout, stderr } = await home.run(['What is the weather?'], service.key)
    expect(code, stderr).toBe(0)
    expect(stderr).toContain('weather/get_weather (completed)')
    expect(stdout).toContain('It is 7 degrees in Oslo.')
    expect(JSON.stringify(model.bodies[0]!['tools']).includes('"namespace"')).toBe(knows)
  })

  test('patches a file by a custom tool, where the list of models says so', async () => {
    using home = new CodexHome()
    await using played = await ScriptedService.start(
      format,
      (conversation, turn) => (turn === 1 ? callOf(conversation, 'apply_patch', patch) : say('Done.')),
      preset,
    )
    const { service, model } = played
    await home.configureWithModels(service)
    const { code, stdout, stderr } = await home.run(['Make the file.'], service.key, inItsFolder)
    expect(code, stderr).toBe(0)
    expect(stdout).toContain('Done.')
    expect(stderr).not.toContain('incompatible payload')
    expect(readFileSync(join(home.work, 'made.txt'), 'utf8')).toBe('made by Codex\n')
    expect(JSON.stringify(model.bodies[0]!['tools']).includes('"custom"')).toBe(knows)
    expect(model.bodies).toHaveLength(2)
  })

  test('looks at an image, which reaches the model as an image', async () => {
    using home = new CodexHome()
    const path = home.putPixel()
    await using played = await ScriptedService.start(
      format,
      (conversation, turn) => (turn === 1 ? callOf(conversation, 'view_image', { path }) : say('I have seen it.')),
      preset,
    )
    const { service, model } = played
    await home.configureWithModels(service)
    const { code, stdout, stderr } = await home.run(['Look at pixel.png.'], service.key, inItsFolder)
    expect(code, stderr).toBe(0)
    expect(stdout).toContain('I have seen it.')
    expect(imagesIn(model.bodies[1]!)).toBe(1)
  })

  test('leaves web search on, which only a backend that has it is told', async () => {
    using home = new CodexHome()
    await using played = await ScriptedService.start(format, () => say('Hello.'), preset)
    const { service, model } = played
    home.configure(service)
    const { code, stdout, stderr } = await home.run(['Say hello.'], service.key)
    expect(code, stderr).toBe(0)
    expect(stdout).toContain('Hello.')
    expect(JSON.stringify(model.bodies[0]!['tools']).includes('"web_search"')).toBe(knows)
  })

  test('goes on with its reasoning, in a loop and after a restart, and only as the backend sealed it', async () => {
    using home = new CodexHome()
    await using played = await ScriptedService.start(
      format,
      (conversation, turn) => [
        ...thought,
        ...(turn === 1 ? callOf(conversation, 'get_weather', { city: 'Oslo' }) : say(`Turn ${turn}.`)),
      ],
      preset,
    )
    const { service, model } = played
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

/** The text of the last result of a tool. */
function resultIn({ turns }: Conversation): string {
  const result = turns.findLast(({ role }) => role === 'tool')
  return result?.parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join(' ') ?? ''
}
