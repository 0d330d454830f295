import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { OneBackend } from './one-backend.ts'
import { OpencodeHome } from './opencode-home.ts'
import type { Finished } from './programme.ts'

// One for all: the first start in a home takes it several seconds.
let home: OpencodeHome
beforeAll(() => {
  OpencodeHome.install()
  home = new OpencodeHome()
})
afterAll(() => home[Symbol.dispose]())

const formats = ['openai-chat', 'openai-responses'] as const
const spoken = [
  ['chat completions', undefined, 'openai-chat'],
  ['responses', '@ai-sdk/openai', 'openai-responses'],
] as const
/** With a title of its own a session does not ask for one. */
const titled = ['--title', 'A title']

// Its command line has no way to ask for an object of a schema, so there is no test of that.
describe.each(formats.flatMap((format) => spoken.map((client) => [...client, format] as const)))(
  'opencode, over %s',
  (_, npm, clientFormat, format) => {
    describe(`with a backend that speaks ${format}`, () => {
      let backend: OneBackend
      beforeEach(async () => {
        backend = await OneBackend.start(format)
        home.configure(backend.service, npm === undefined ? {} : { npm })
      })
      afterEach(() => backend[Symbol.asyncDispose]())

      function opencode(...args: readonly string[]): Promise<Finished> {
        return home.run(args, backend.service.key)
      }

      test('finishes a prompt, streamed, with one request for the title of the session and one for the answer', async () => {
        const { code, stdout, stderr } = await opencode('Say hello.')
        expect(code, stderr).toBe(0)
        expect(stdout).toContain('This is a simulated answer from alpha.')
        await backend.expectServed(2, clientFormat)
      })

      test('calls a tool and answers with its result, and asks for no title where it has one', async () => {
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

      test('answers after all where only the first answer broke off', async () => {
        backend.provider.script([{ do: 'cut', afterEvents: 9 }])
        const { code, stdout } = await opencode(...titled, 'Say hello.')
        expect(code).toBe(0)
        expect(stdout.match(/This is a simulated answer from alpha\./g)).toHaveLength(1)
        expect(await backend.outcomes()).toEqual(['upstream_broken', undefined])
      })
    })
  },
)

test('opencode does not take an answer that breaks off for a whole one: it asks five times more within a minute and says that it failed', async () => {
  // Both at once: it waits most of the time.
  await Promise.all(
    spoken.map(async ([, npm]) => {
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
