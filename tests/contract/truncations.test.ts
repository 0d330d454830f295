import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { ConversationFormatId } from '../../src/domain/format-id.ts'
import { clientSides } from './client-sides.ts'
import { formatIds, streamsOf } from './recordings.ts'
import { TruncatingService, sampledTruncations, type TruncatedAnswer } from './truncations.ts'

const withinMs = 240_000
const clients = Object.keys(clientSides) as ConversationFormatId[]

describe.each(formatIds)('an answer of a %s provider that is truncated at any byte', (format) => {
  let truncating: TruncatingService
  beforeAll(async () => {
    truncating = await TruncatingService.start(format)
  })
  afterAll(() => truncating[Symbol.asyncDispose]())

  test.each(clients)(
    'a client of %s never sees success before the end of the answer, and always sees it after the end',
    { timeout: withinMs },
    async (client) => {
      const { saysSuccess, saysFailure } = clientSides[client]
      const truncations = sampledTruncations(streamsOf(format))
      const answers = await truncating.askAll(client, truncations)
      const wrong = answers.filter(({ recording, bytes, status, text }) => {
        if (bytes >= recording.completeBytes) return status !== 200 || !saysSuccess(text) || saysFailure(text)
        if (status === 200) return saysSuccess(text) || !saysFailure(text)
        return status !== 503 || !text.includes('"server_is_overloaded"')
      })
      expect(wrong.slice(0, 3).map(describeAnswer)).toEqual([])
      // All kinds occurred: rejected, broken in the middle, and complete.
      const kinds = new Set(
        answers.map(({ recording, bytes, status }) => `${status} ${bytes >= recording.completeBytes}`),
      )
      expect([...kinds].sort()).toEqual(['200 false', '200 true', '503 false'])
      expect(answers.length).toBeGreaterThanOrEqual(truncations.length)
    },
  )
})

function describeAnswer({ recording, bytes, status, text }: TruncatedAnswer): unknown {
  return { name: recording.name, bytes, completeBytes: recording.completeBytes, status, text: text.slice(-1_000) }
}
