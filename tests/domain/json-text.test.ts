import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { parseStrictJson } from '../../src/domain/json-text.ts'

test('JSON without repeated names is read as JSON.parse reads it', () => {
  fc.assert(
    fc.property(fc.json({ maxDepth: 6 }), fc.constantFrom('', ' ', '\n\t'), (text, space) => {
      const spaced = JSON.stringify(JSON.parse(text), undefined, space)
      expect(parseStrictJson(spaced)).toEqual({ value: JSON.parse(spaced) as unknown })
    }),
  )
})

test.each([
  ['{"a":1,"a":2}', ['a']],
  ['{"a":{"b":[{"c":1},{"c":1,"d":"}","c":2}]}}', ['a', 'b', 1, 'c']],
  [String.raw`{"a\"":1,"b":{"x":1,"\u0078":2}}`, ['b', 'x']],
])('a repeated name is found at its path: %s', (text, path) => {
  expect(parseStrictJson(text)).toEqual({ fault: 'repeated', path })
})

test('what is not JSON, and what is nested too deeply, is told apart', () => {
  expect(parseStrictJson('{"a":')).toMatchObject({ fault: 'invalid' })
  expect(parseStrictJson('"open')).toMatchObject({ fault: 'invalid' })
  expect(parseStrictJson(`${'['.repeat(33)}${']'.repeat(33)}`)).toMatchObject({ fault: 'deep' })
  expect(parseStrictJson(`${'['.repeat(32)}${']'.repeat(32)}`)).toMatchObject({ value: expect.anything() as unknown })
  expect(parseStrictJson(JSON.stringify('['.repeat(100)))).toEqual({ value: '['.repeat(100) })
})
