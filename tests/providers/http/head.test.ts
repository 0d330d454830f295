import { validateHeaderValue } from 'node:http'
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { readHead, readRetryAfter } from '../../../src/providers/http/head.ts'
import { anyText } from '../../any-text.ts'

const nowMs = (): number => Date.UTC(2026, 10, 20, 12, 0, 0)

describe('Retry-After', () => {
  test.each([
    ['0', 0],
    ['7', 7_000],
    ['1.5', 1_500],
    ['1000000000000', 1e15],
    ['999999999999999999', Number.MAX_SAFE_INTEGER],
    ['Fri, 20 Nov 2026 12:00:30 GMT', 30_000],
    ['Friday, 20-Nov-26 12:00:30 GMT', 30_000],
    ['Fri, 20 Nov 2026 11:00:00 GMT', 0],
    ['Thu, 01 Jan 1970 00:00:00 GMT', 0],
  ])('%j is read as %d ms', (value, ms) => {
    expect(readRetryAfter(undefined, value, nowMs)).toBe(ms)
  })

  test.each([
    '',
    ' ',
    '-1',
    '+5',
    '1e12',
    '0x10',
    'NaN',
    'Infinity',
    'soon',
    '5 seconds',
    '2026-11-20',
    'Fri, nonsense of a date',
    '9'.repeat(100),
    '٣',
  ])('%j is ignored', (value) => {
    expect(readRetryAfter(undefined, value, nowMs)).toBeUndefined()
  })

  test('retry-after-ms takes precedence unless it is invalid', () => {
    expect(readRetryAfter('250', '7', nowMs)).toBe(250)
    expect(readRetryAfter('250.7', undefined, nowMs)).toBe(250.7)
    expect(readRetryAfter('x', '7', nowMs)).toBe(7_000)
    expect(readRetryAfter('x', undefined, nowMs)).toBeUndefined()
  })
})

describe('the head of an answer', () => {
  test('the most specific request ID is used, and of a repeated header the first value', () => {
    expect(
      readHead(200, { 'cf-ray': 'c', 'request-id': ['b', 'x'], 'x-request-id': '\u0000 \u0001' }, nowMs).requestId,
    ).toBe('b')
    expect(readHead(200, {}, nowMs)).toEqual({
      status: 200,
      contentType: '',
      retryAfterMs: undefined,
      requestId: undefined,
    })
  })

  test('whatever a provider sends, the result can be sent in a header and is bounded', () => {
    const value = fc.oneof(
      anyText(),
      fc.string({ minLength: 200, maxLength: 2000 }),
      fc.array(fc.string(), { minLength: 1 }),
    )
    fc.assert(
      fc.property(value, value, value, (id, type, retryAfter) => {
        const head = readHead(200, { 'x-request-id': id, 'content-type': type, 'retry-after': retryAfter }, nowMs)
        expect(head.requestId ?? 'none').toMatch(/^[\x20-\x7e]{1,128}$/)
        expect(head.contentType).toMatch(/^[\x20-\x7e]{0,128}$/)
        expect(() => validateHeaderValue('x', head.requestId ?? '')).not.toThrow()
        if (head.retryAfterMs !== undefined)
          expect(Number.isFinite(head.retryAfterMs) && head.retryAfterMs >= 0).toBe(true)
      }),
      { numRuns: 2_000 },
    )
  })
})
