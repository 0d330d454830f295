import { expect, test } from 'vitest'
import { KeyedDigest } from '../../src/runtime/keyed-digest.ts'

test('another secret or another text gives another digest', () => {
  const digest = new KeyedDigest(new Uint8Array(32))
  const other = new KeyedDigest(new Uint8Array(32).fill(1))
  expect(digest.of('some text')).toMatch(/^[\w-]{22}$/)
  expect(digest.of('some text')).toBe(new KeyedDigest(new Uint8Array(32)).of('some text'))
  expect(digest.of('some text.')).not.toBe(digest.of('some text'))
  expect(other.of('some text')).not.toBe(digest.of('some text'))
})
