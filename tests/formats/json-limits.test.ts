import { expect, test } from 'vitest'
import { isTooComplex } from '../../src/formats/json-limits.ts'

const list = (element: string, count: number): string => `[${Array.from({ length: count }, () => element).join(',')}]`
const members = (count: number): string => `{${Array.from({ length: count }, (_, n) => `"k${n}":1`).join(',')}}`

test.each([
  ['201 levels', '['.repeat(201) + ' '.repeat(200)],
  ['202 levels of arrays and objects', '[{"a":'.repeat(101) + ' '.repeat(200)],
  ['400,001 arrays', list('[]', 400_000)],
  ['400,001 objects', list('{"a":1}', 400_000)],
  ['4,000,001 separators', list('1', 4_000_002)],
  ['10,001 members of one object', members(10_001)],
])('an answer with %s is too complex', (_, json) => {
  expect(isTooComplex(json)).toBe(true)
})

test.each([
  ['a short text full of brackets', JSON.stringify('[{"a":1},'.repeat(300))],
  ['one long text', JSON.stringify('[{"a":1},'.repeat(1_000_000))],
  ['16,384 log probabilities with five others each', list(`{"t":"a","o":${list('{"t":"b","p":-1}', 5)}}`, 16_384)],
  ['2,048 vectors of 1,536 numbers', list(list('-0.01', 1_536), 2_048)],
  ['10,000 members of one object', members(10_000)],
])('an answer with %s is not too complex', (_, json) => {
  expect(isTooComplex(json)).toBe(false)
})
