import { beforeAll, describe, expect, test } from 'vitest'
import { citySchema } from './agent-home.ts'
import { ClaudeHome } from './claude-home.ts'
import { callOf, imagesIn, say } from './scripted-model.ts'
import { ScriptedService } from './scripted-service.ts'

beforeAll(() => void ClaudeHome.install())

describe.each(['openai-chat', 'openai-responses', 'anthropic-messages'] as const)(
  'Claude Code, with a backend that speaks %s',
  (format) => {
    test('gives an object of a schema, which it takes from the model by a tool', async () => {
      using home = new ClaudeHome()
      const city = { city: 'Oslo', degrees: 7 }
      await using played = await ScriptedService.start(format, (conversation, turn) =>
        turn === 1 ? callOf(conversation, 'StructuredOutput', city) : say('It is 7 degrees.'),
      )
      const { service, model } = played
      const { code, stdout, stderr } = await home.run(service, service.key, 'What is it like in Oslo?', {
        args: ['--output-format', 'json', '--json-schema', JSON.stringify(citySchema)],
      })
      expect(code, stderr).toBe(0)
      expect(JSON.parse(stdout)).toMatchObject({ is_error: false, structured_output: city })
      expect(await service.requests()).toHaveLength(model.bodies.length)
    })

    test('reads an image by its tool, which reaches the model as an image', async () => {
      using home = new ClaudeHome()
      const file_path = home.putPixel()
      await using played = await ScriptedService.start(format, (conversation, turn) =>
        turn === 1 ? callOf(conversation, 'Read', { file_path }) : say('I have seen it.'),
      )
      const { service, model } = played
      const { code, stdout, stderr } = await home.run(service, service.key, 'Look at pixel.png.')
      expect(code, stderr).toBe(0)
      expect(stdout.trim()).toBe('I have seen it.')
      expect(model.bodies.map(imagesIn)).toEqual([0, 1])
      expect(await service.requests()).toHaveLength(2)
    })
  },
)
