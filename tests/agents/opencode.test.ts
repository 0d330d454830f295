import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { OneBackend } from './one-backend.ts'
import { OpencodeHome } from './opencode-home.ts'
import type { Finished } from './program.ts'

// All tests share one home, because the first start in a home takes several seconds.
let home: OpencodeHome
beforeAll(() => {
  OpencodeHome.install()
  home = new OpencodeHome()
})
afterAll(() => home[Symbol.dispose]())

const formats = ['openai-chat', 'openai-responses'] as const
const endpoints = [
  ['chat completions', undefined, 'openai-chat'],
  ['responses', '@ai-sdk/openai', 'openai-responses'],
] as const
/** If the session already has a title, opencode does not request one from the model. */
const titled = ['--title', 'A title']

// No test requests an object that matches a schema: the command line of opencode cannot.
describe.each(formats.flatMap((format) => endpoints.map((client) => [...client, format] as const)))(
  'opencode over %s',
  (_, npm, clientFormat, format) => {
    describe(`with a backend of format ${format}`, () => {
      let backend: OneBackend
      beforeEach(async () => {
        backend = await OneBackend.start(format)
        home.configure(backend.service, npm === undefined ? {} : { npm })
      })
      afterEach(() => backend[Symbol.asyncDispose]())

      function opencode(...args: readonly string[]): Promise<Finished> {
        return home.run(args, backend.service.key)
      }

      test('finishes a prompt, streamed, with one request for the session title and one for the answer', async () => {
        const { code, stdout, stderr } = await opencode('Say hello.')
        expect(code, stderr).toBe(0)
        expect(stdout).toContain('This is a simulated answer from alpha.')
        await backend.expectServed(2, clientFormat)
      })

      test('calls a tool, answers with its result, and requests no title if the session has one', async () => {
        const { code, stdout, stderr } = await opencode(...titled, 'What is the weather in Oslo?')
        expect(code, stderr).toBe(0)
        expect(stdout).toContain('It is 7 degrees in Oslo.')
        await backend.expectServed(2, clientFormat)
      })

      test('attaches an image', async () => {
        const { code, stdout, stderr } = await opencode(...titled, 'What is this?', '-f', home.putPixel())
        expect(code, stderr).toBe(0)
        expect(stdout).toContain('I received 1 image.')
        await backend.expectServed(1, clientFormat)
      })

      test('answers if only the first answer was incomplete', async () => {
        backend.provider.script([{ do: 'cut', afterEvents: 9 }])
        const { code, stdout } = await opencode(...titled, 'Say hello.')
        expect(code).toBe(0)
        expect(stdout.match(/This is a simulated answer from alpha\./g)).toHaveLength(1)
        expect(await backend.outcomes()).toEqual(['upstream_broken', undefined])
      })
    })
  },
)

test('opencode does not accept an incomplete answer: it sends five more requests within a minute, then reports an error', async () => {
  // Run both concurrently: opencode waits most of the time.
  await Promise.all(
    endpoints.map(async ([, npm]) => {
      using own = new OpencodeHome()
      await using backend = await OneBackend.start('openai-chat')
      own.configure(backend.service, npm === undefined ? {} : { npm })
      backend.provider.script([{ do: 'cut', afterEvents: 9, repeat: true }])
      const { code, stdout, stderr } = await own.run([...titled, 'Say hello.'], backend.service.key)
      expect(code).toBe(1)
      expect(stdout.trim()).toBe('')
      expect(stderr).toContain('The response ended before it was complete')
      expect(await backend.outcomes()).toEqual(Array.from({ length: 6 }, () => 'upstream_broken'))
    }),
  )
})
