import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { AnswerEvent, Conversation, JsonObject } from '../../src/domain/conversation.ts'
import { pixel } from '../clients/openai-clients.ts'
import { CodexHome, weatherServer } from './codex-home.ts'
import { RunningService } from './running-service.ts'
import { startScriptedModel, type ScriptedModel } from './scripted-model.ts'

beforeAll(() => void CodexHome.install())

/** Its folder is thrown away, and no sandbox of this machine has to be there for it. */
const inItsFolder = ['--dangerously-bypass-approvals-and-sandbox']

const patch = '*** Begin Patch\n*** Add File: made.txt\n+made by Codex\n*** End Patch\n'

/** A call as a model makes it that sees these tools: in a namespace and as free text where it was declared so. */
function callOf({ tools }: Conversation, name: string, input: string | JsonObject): AnswerEvent[] {
  const tool = tools.find((one) => one.type !== 'hosted' && (one.name === name || one.name.endsWith(`__${name}`)))
  if (tool === undefined || tool.type === 'hosted') throw new Error(`no tool ${name} was declared`)
  const isFree = tool.type === 'custom'
  const text = typeof input === 'string' ? (isFree ? input : JSON.stringify({ input })) : JSON.stringify(input)
  const half = Math.floor(text.length / 2)
  return [
    {
      type: 'call',
      index: 0,
      kind: tool.type,
      id: 'call_scripted',
      name: tool.name,
      ...(tool.namespace !== undefined && { namespace: tool.namespace }),
    },
    { type: 'call_arguments', index: 0, text: text.slice(0, half) },
    { type: 'call_arguments', index: 0, text: text.slice(half) },
    { type: 'finish', reason: 'tool_calls' },
  ]
}

function say(text: string): AnswerEvent[] {
  return [
    { type: 'text', text },
    { type: 'finish', reason: 'stop' },
  ]
}

const thought: AnswerEvent[] = [
  { type: 'reasoning', text: '**Thinking** about it.' },
  { type: 'reasoning_end', sealed: 'gAAAA-sealed-by-the-backend' },
]

describe.each([
  { name: 'chat completions', format: 'openai-chat', preset: 'custom', knows: false },
  { name: 'responses and knows only functions', format: 'openai-responses', preset: 'custom', knows: false },
  { name: 'responses with all of its tools', format: 'openai-responses', preset: 'openai', knows: true },
] as const)('Codex, with a backend that speaks $name', ({ format, preset, knows }) => {
  let home: CodexHome
  let service: RunningService
  let model: ScriptedModel
  beforeEach(() => {
    home = new CodexHome()
  })
  afterEach(async () => {
    home[Symbol.dispose]()
    await service[Symbol.asyncDispose]()
    await model[Symbol.asyncDispose]()
  })

  async function start(answer: Parameters<typeof startScriptedModel>[1]): Promise<void> {
    model = await startScriptedModel(format, answer)
    const config = `
providers: { scripted: { preset: ${preset}, base_url: '${model.baseUrl}', format: ${format} } }
backends: { alpha: { provider: scripted, model: model-of-alpha, credential_env: SCRIPTED_KEY } }
`
    service = await RunningService.start(config, { SCRIPTED_KEY: 'made-up-for-this-test' })
  }

  test('calls a tool of a tool server in its namespace', async () => {
    await start((conversation, turn) =>
      turn === 1 ? callOf(conversation, 'get_weather', { city: 'Oslo' }) : say(`Seen: ${resultIn(conversation)}`),
    )
    home.configure(service, { end: weatherServer })
    const { code, stdout, stderr } = await home.run(['What is the weather?'], service.key)
    expect(code, stderr).toBe(0)
    expect(stderr).toContain('weather/get_weather (completed)')
    expect(stdout).toContain('It is 7 degrees in Oslo.')
    expect(JSON.stringify(model.bodies[0]!['tools']).includes('"namespace"')).toBe(knows)
  })

  test('patches a file by a custom tool, where the list of models says so', async () => {
    await start((conversation, turn) => (turn === 1 ? callOf(conversation, 'apply_patch', patch) : say('Done.')))
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
    const path = (): string => join(home.work, 'pixel.png')
    await start((conversation, turn) =>
      turn === 1 ? callOf(conversation, 'view_image', { path: path() }) : say('I have seen it.'),
    )
    writeFileSync(path(), Buffer.from(pixel.slice(pixel.indexOf(',') + 1), 'base64'))
    await home.configureWithModels(service)
    const { code, stdout, stderr } = await home.run(['Look at pixel.png.'], service.key, inItsFolder)
    expect(existsSync(path())).toBe(true)
    expect(code, stderr).toBe(0)
    expect(stdout).toContain('I have seen it.')
    const sent = JSON.stringify(model.bodies[1])
    expect(sent).toMatch(/"(image_url|input_image)"/)
    expect(sent.match(/data:image\/png;base64,/g)).toHaveLength(1)
    // As a part of its own, never inside the text of a result.
    expect(sent).not.toMatch(/\\"image_url\\"/)
  })

  test('leaves web search on, which only a backend that has it is told', async () => {
    await start(() => say('Hello.'))
    home.configure(service)
    const { code, stdout, stderr } = await home.run(['Say hello.'], service.key)
    expect(code, stderr).toBe(0)
    expect(stdout).toContain('Hello.')
    expect(JSON.stringify(model.bodies[0]!['tools']).includes('"web_search"')).toBe(knows)
  })

  test('goes on with its reasoning, in a loop and after a restart, and only as the backend sealed it', async () => {
    await start((conversation, turn) => [
      ...thought,
      ...(turn === 1 ? callOf(conversation, 'get_weather', { city: 'Oslo' }) : say(`Turn ${turn}.`)),
    ])
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
