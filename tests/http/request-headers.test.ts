import type { IncomingMessage } from 'node:http'
import { expect, test } from 'vitest'
import { parseRequestHeaders } from '../../src/http/request-headers.ts'

test.each([
  ['1', true],
  ['2', true],
  ['99', true],
  ['0', false],
  ['00', false],
  ['01', false],
  ['100', false],
  ['-1', false],
  ['1e1', false],
  ['1, 1', false],
  [' 1', false],
  ['', false],
  ['9'.repeat(10_000), false],
  [undefined, false],
])('with X-Stainless-Retry-Count %o, a request counts as a retry: %s', (value, isRetry) => {
  const headers = value === undefined ? {} : { 'x-stainless-retry-count': value }
  expect(parseRequestHeaders({ headers } as unknown as IncomingMessage).isRetry).toBe(isRetry)
})

test.each([
  ['600', 600_000],
  ['900.0', 900_000],
  ['0.5', 500],
  ['0', undefined],
  ['0.0', undefined],
  ['.5', undefined],
  ['1e3', undefined],
  ['-1', undefined],
  ['NOT_GIVEN', undefined],
  ['12345678', undefined],
  ['', undefined],
  [undefined, undefined],
])('with X-Stainless-Timeout %o, a request may last %o ms', (value, timeoutMs) => {
  const headers = value === undefined ? {} : { 'x-stainless-timeout': value }
  expect(parseRequestHeaders({ headers } as unknown as IncomingMessage).timeoutMs).toBe(timeoutMs)
})
