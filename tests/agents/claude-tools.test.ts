import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { citySchema } from './agent-home.ts'
import { ClaudeHome } from './claude-home.ts'
import { RunningService } from './running-service.ts'
import { callOf, imagesIn, say, startScriptedModel, type ScriptedModel } from './scripted-model.ts'

beforeAll(() => void ClaudeHome.install())

describe.each(['openai-chat', 'openai-responses', 'anthropic-messages'] as const)(
  'Claude Code, with a backend that speaks %s',
  (format) => {
    let home: ClaudeHome
    let service: RunningService
    let model: ScriptedModel
    beforeEach(() => {
      home = new ClaudeHome()
    })
    afterEach(async () => {
      home[Symbol.dispose]()
      await service[Symbol.asyncDispose]()
      await model[Symbol.asyncDispose]()
    })

    async function start(answer: Parameters<typeof startScriptedModel>[1]): Promise<void> {
      model = await startScriptedModel(format, answer)
      service = await RunningService.startBefore(model, format)
    }

    test('gives an object of a schema, which it takes from the model by a tool', async () => {
      const city = { city: 'Oslo', degrees: 7 }
      await start((conversation, turn) =>
        turn === 1 ? callOf(conversation, 'StructuredOutput', city) : say('It is 7 degrees.'),
      )
      const { code, stdout, stderr } = await home.run(service, service.key, 'What is it like in Oslo?', {
        args: ['--output-format', 'json', '--json-schema', JSON.stringify(citySchema)],
      })
      expect(code, stderr).toBe(0)
      expect(JSON.parse(stdout)).toMatchObject({ is_error: false, structured_output: city })
      expect(await service.requests()).toHaveLength(model.bodies.length)
    })

    test('reads an image by its tool, which reaches the model as an image', async () => {
      const file_path = home.putPixel()
      await start((conversation, turn) =>
        turn === 1 ? callOf(conversation, 'Read', { file_path }) : say('I have seen it.'),
      )
      const { code, stdout, stderr } = await home.run(service, service.key, 'Look at pixel.png.')
      expect(code, stderr).toBe(0)
      expect(stdout.trim()).toBe('I have seen it.')
      expect(model.bodies.map(imagesIn)).toEqual([0, 1])
      expect(await service.requests()).toHaveLength(2)
    })
  },
)
