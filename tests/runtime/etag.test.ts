import { expect, test } from 'vitest'
import { namesEtag } from '../../src/runtime/etag.ts'

test.each([
  ['"abc"', true],
  ['W/"abc"', true],
  ['*', true],
  [' * ', true],
  ['"x", "abc"', true],
  ['W/"x",W/"abc","y"', true],
  ['"x,y", "abc"', true],
  ['"x"', false],
  ['abc', false],
  ['"abcd"', false],
  ['"x", *', false],
  ['', false],
  [undefined, false],
  [null, false],
])('If-None-Match %o names the ETag "abc": %s (contract 2.38)', (header, names) => {
  expect(namesEtag(header, '"abc"')).toBe(names)
})
