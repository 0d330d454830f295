import { describe, expect, test } from 'vitest'
import { classifyAnswerError, classifyRejection } from '../../src/formats/answer-faults.ts'

const body = (error: object): string => JSON.stringify({ error })

describe('a provider’s rejection', () => {
  test.each([
    [400, '', 'rejected_content'],
    [413, '', 'rejected_content'],
    [422, '', 'rejected_content'],
    [400, body({ code: 'context_length_exceeded' }), 'context_too_long'],
    [400, body({ code: 'context_window_exceeded' }), 'context_too_long'],
    [401, '', 'rejected_credentials'],
    [402, '', 'rejected_credentials'],
    [403, '', 'rejected_credentials'],
    [408, '', 'timeout'],
    [504, '', 'timeout'],
    [429, body({ code: 'rate_limit_exceeded' }), 'rate_limited'],
    [429, '<html>', 'rate_limited'],
    [429, body({ code: 'insufficient_quota' }), 'rejected_credentials'],
    [429, body({ code: null, type: 'insufficient_quota' }), 'rejected_credentials'],
    [500, body({ code: 'insufficient_quota' }), 'server_error'],
    [529, '', 'server_error'],
    [404, 'null', 'not_found'],
  ])('with status %i and body %s is classified as %s', (status, text, outcome) => {
    expect(classifyRejection({ status, retryAfterMs: undefined }, text)).toMatchObject({ outcome, status })
  })

  test('a field of the request is named, but text that is no field name is dropped', () => {
    const head = { status: 400, retryAfterMs: undefined }
    expect(classifyRejection(head, body({ param: 'messages[0].content' })).param).toBe('messages[0].content')
    expect(classifyRejection(head, body({ param: 'your secret is x' })).param).toBeUndefined()
  })
})

test('an exhausted account has the same outcome inside an answer as in a status', () => {
  const error = { code: 'insufficient_quota', message: 'x' }
  expect(classifyAnswerError(error).outcome).toBe(
    classifyRejection({ status: 429, retryAfterMs: 1 }, body(error)).outcome,
  )
})
