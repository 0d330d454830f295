import { expect, test } from 'vitest'
import { errorMessage } from '../../src/domain/error-text.ts'
import { ServiceError } from '../../src/domain/errors.ts'
import { linksFor } from '../../src/domain/links.ts'

/** What Claude Code 2.1 and opencode 1.18 look for in a message, to know that a conversation must be compacted. */
const lookedFor = [/prompt is too long/i, /exceeds the context window/i]

test('a conversation that is too long is told in words that agents look for', () => {
  const error = new ServiceError('context_length_exceeded', { words: { profile: 'svc-router/frontier' } })
  const message = errorMessage(error, linksFor('https://app.example.com'))
  for (const words of lookedFor) expect(message).toMatch(words)
})
