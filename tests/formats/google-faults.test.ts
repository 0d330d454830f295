import { expect, test } from 'vitest'
import { classifyAnswerError, classifyRejection } from '../../src/formats/answer-faults.ts'

const errorInfo = (reason: string): object => ({ '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason })
const body = (code: number, status: string, message: string, details: object[] = []): string =>
  JSON.stringify({ error: { code, message, status, details } })
const tooLong = 'The input token count (3475108) exceeds the maximum number of tokens allowed (1048576).'

test.each([
  [
    'a wrong key, which Google calls an invalid argument',
    400,
    body(400, 'INVALID_ARGUMENT', 'API key not valid.', [errorInfo('API_KEY_INVALID')]),
    'rejected_credentials',
  ],
  [
    'an expired key',
    400,
    body(400, 'INVALID_ARGUMENT', 'API key expired.', [errorInfo('API_KEY_INVALID')]),
    'rejected_credentials',
  ],
  [
    'an expired token',
    401,
    body(401, 'UNAUTHENTICATED', 'Request had invalid authentication credentials.', [
      errorInfo('ACCESS_TOKEN_EXPIRED'),
    ]),
    'rejected_credentials',
  ],
  [
    'a disabled API',
    403,
    body(403, 'PERMISSION_DENIED', 'Not enabled.', [errorInfo('SERVICE_DISABLED')]),
    'rejected_credentials',
  ],
  [
    'a region that is not served',
    400,
    body(400, 'FAILED_PRECONDITION', 'User location is not supported for the API use.'),
    'rejected_credentials',
  ],
  ['a conversation that is too long', 400, body(400, 'INVALID_ARGUMENT', tooLong), 'context_too_long'],
  ['the same in a list of one', 400, `[${body(400, 'INVALID_ARGUMENT', tooLong)}]`, 'context_too_long'],
  [
    'a missing signature',
    400,
    body(400, 'INVALID_ARGUMENT', 'Function call is missing a thought_signature in functionCall parts.'),
    'server_error',
  ],
  [
    'any other problem with the content',
    400,
    body(400, 'INVALID_ARGUMENT', 'Please use a valid role: user, model.'),
    'rejected_content',
  ],
  [
    'a model that does not exist',
    404,
    body(404, 'NOT_FOUND', 'models/x is not found for API version v1beta'),
    'not_found',
  ],
  ['a used-up quota', 429, body(429, 'RESOURCE_EXHAUSTED', 'You exceeded your current quota.'), 'rate_limited'],
  ['an overloaded model', 503, body(503, 'UNAVAILABLE', 'The model is overloaded.'), 'server_error'],
  ['a deadline', 504, body(504, 'DEADLINE_EXCEEDED', 'Deadline expired.'), 'timeout'],
  ['an internal error', 500, body(500, 'INTERNAL', 'An internal error has occurred.'), 'server_error'],
])('a Google error is classified: %s', (_, status, text, outcome) => {
  const fault = classifyRejection({ status }, text)
  expect([fault.outcome, fault.status]).toEqual([outcome, status])
  expect(String(fault)).toBe(`UpstreamError: ${outcome}`)
})

test('RetryInfo in a Google error sets the wait, unless a header does', () => {
  const retry = { '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '48.805646254s' }
  const exhausted = body(429, 'RESOURCE_EXHAUSTED', 'Quota exceeded.', [errorInfo('RATE_LIMIT_EXCEEDED'), retry])
  expect(classifyRejection({ status: 429 }, exhausted).retryAfterMs).toBe(48_806)
  expect(classifyRejection({ status: 429, retryAfterMs: 5_000 }, exhausted).retryAfterMs).toBe(5_000)
  const odd = body(429, 'RESOURCE_EXHAUSTED', 'x', [{ retryDelay: '-1s' }, { retryDelay: 7 }])
  expect(classifyRejection({ status: 429 }, odd).retryAfterMs).toBeUndefined()
  const absurd = body(429, 'RESOURCE_EXHAUSTED', 'x', [{ retryDelay: '99999999999999999999s' }])
  expect(classifyRejection({ status: 429 }, absurd).retryAfterMs).toBe(Number.MAX_SAFE_INTEGER)
})

test('a Google error inside an answer has its category, too', () => {
  expect(classifyAnswerError({ code: 429, status: 'RESOURCE_EXHAUSTED', message: 'x' }).outcome).toBe('rate_limited')
  expect(classifyAnswerError({ code: 400, status: 'constructor', message: 'x' }).outcome).toBe('server_error')
})
