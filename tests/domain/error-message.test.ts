import { expect, test } from 'vitest'
import { errorCodes, errorMessage } from '../../src/domain/error-message.ts'
import { errorCatalog, ServiceError } from '../../src/domain/errors.ts'
import { linksFor } from '../../src/domain/links.ts'
import { UpstreamError } from '../../src/domain/upstream.ts'
import type { ModelRequest } from '../../src/gateway/ports.ts'
import { contentRejected } from '../../src/gateway/routing/rejection-errors.ts'

/** Claude Code 2.1 and opencode 1.18 compact a conversation when a message matches one of these. */
const expectedByAgents = [/prompt is too long/i, /exceeds the context window/i]

test('the message for a conversation that is too long contains the words that agents look for', () => {
  const error = new ServiceError('context_length_exceeded', { words: { profile: 'svc-router/frontier' } })
  const message = errorMessage(error, linksFor('https://app.example.com'))
  for (const words of expectedByAgents) expect(message).toMatch(words)
})

test.each([
  [1, 'the Slow plan allows 1 concurrent fusion.'],
  [2, 'the Slow plan allows 2 concurrent fusions.'],
])('the message for a limit of %i has the right plural form', (limit, sentence) => {
  const error = new ServiceError('too_many_fusions', { words: { plan: 'Slow', limit, seconds: 4 } })
  expect(errorMessage(error, linksFor('https://app.example.com'))).toContain(sentence)
})

test.each([
  [400, 'of this request (HTTP status 400): a content filter blocked the request or its answer. Change'],
  [undefined, 'of this request: a content filter blocked the request or its answer. Change'],
])('the message for rejected content has the status of the rejection, if it has one (%s)', (status, words) => {
  const rejection = { rule: 'content_filter' } as const
  const rejected = new UpstreamError('rejected_content', { status, rejection })
  const error = contentRejected(rejected, { id: 'b0' }, { body: {} } as ModelRequest, 0)
  expect(errorMessage(error, linksFor('https://app.example.com'))).toContain(words)
})

test('the message of every 401, 402, and 403, and of three other errors, ends with a link', () => {
  const links = linksFor('https://app.example.com')
  const linked = errorCodes.filter((code) =>
    /https:\/\/app\.example\.com\S*$/.test(errorMessage(new ServiceError(code), links)),
  )
  const own = errorCodes.filter((code) => [401, 402, 403].includes(errorCatalog[code].status))
  expect(linked.toSorted()).toEqual(
    [...own, 'upstream_credentials_rejected', 'upstream_misconfigured', 'internal_error'].toSorted(),
  )
})
