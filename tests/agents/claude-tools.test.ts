import { beforeAll, describe, expect, test } from 'vitest'
import { citySchema } from './agent-home.ts'
import { ClaudeHome } from './claude-home.ts'
import { callOf, imagesIn, textAnswer } from './scripted-model.ts'
import { ScriptedService } from './scripted-service.ts'

beforeAll(() => void ClaudeHome.install())

describe.each(['openai-chat', 'openai-responses', 'anthropic-messages'] as const)(
  'Claude Code with a backend of format %s',
  (format) => {
    test('returns an object that matches a schema, which it receives from the model in a tool call', async () => {
      using home = new ClaudeHome()
      const city = { city: 'Oslo', degrees: 7 }
      await using scripted = await ScriptedService.start(format, (conversation, turn) =>
        turn === 1 ? callOf(conversation, 'StructuredOutput', city) : textAnswer('It is 7 degrees.'),
      )
      const { service, model } = scripted
      const { code, stdout, stderr } = await home.run(service, service.key, 'What is it like in Oslo?', {
        args: ['--output-format', 'json', '--json-schema', JSON.stringify(citySchema)],
      })
      expect(code, stderr).toBe(0)
      expect(JSON.parse(stdout)).toMatchObject({ is_error: false, structured_output: city })
      expect(await service.requests()).toHaveLength(model.bodies.length)
    })

    test('reads an image with its tool, and the model receives it as an image', async () => {
      using home = new ClaudeHome()
      const file_path = home.putPixel()
      await using scripted = await ScriptedService.start(format, (conversation, turn) =>
        turn === 1 ? callOf(conversation, 'Read', { file_path }) : textAnswer('I can see it.'),
      )
      const { service, model } = scripted
      const { code, stdout, stderr } = await home.run(service, service.key, 'Look at pixel.png.')
      expect(code, stderr).toBe(0)
      expect(stdout.trim()).toBe('I can see it.')
      expect(model.bodies.map(imagesIn)).toEqual([0, 1])
      expect(await service.requests()).toHaveLength(2)
    })
  },
)
