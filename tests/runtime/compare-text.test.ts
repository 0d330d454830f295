import { expect, test } from 'vitest'
import { compareText } from '../../src/runtime/compare-text.ts'

test('texts are sorted by their code units, whatever the language', () => {
  expect(['b', 'a', 'B', 'ä', 'a'].toSorted(compareText)).toEqual(['B', 'a', 'a', 'b', 'ä'])
})
