import { expect, test } from 'vitest'
import { isTooComplex } from '../../src/formats/json-limits.ts'

const list = (element: string, count: number): string => `[${Array.from({ length: count }, () => element).join(',')}]`
/** Objects of 20 members with names of their own. */
const distinct = (count: number): string =>
  `[${Array.from({ length: count }, (_, n) => `{${Array.from({ length: 20 }, (__, at) => `"${n}_${at}":1`).join(',')}}`).join(',')}]`
/** Objects of nine members with the same names, each in another order. */
const orders = (count: number): string =>
  `[${Array.from({ length: count }, (_, n) => `{${shuffled(n).join(',')}}`).join(',')}]`
const members = (count: number): string => `{${Array.from({ length: count }, (_, n) => `"k${n}":1`).join(',')}}`

test.each([
  ['201 levels', '['.repeat(201) + ' '.repeat(200)],
  ['202 levels of arrays and objects', '[{"a":'.repeat(101) + ' '.repeat(200)],
  ['400,001 arrays', list('[]', 400_000)],
  ['400,001 objects', list('{"a":1}', 400_000)],
  ['4,000,001 separators', list('1', 4_000_002)],
  ['10,001 members of one object', members(10_001)],
  ['20,020 different names', distinct(1_001)],
  ['the same names in many orders', orders(100_000)],
])('an answer with %s is too complex', (_, json) => {
  expect(isTooComplex(json)).toBe(true)
})

test.each([
  ['a short text full of brackets', JSON.stringify('[{"a":1},'.repeat(300))],
  ['one long text', JSON.stringify('[{"a":1},'.repeat(1_000_000))],
  ['16,384 log probabilities with five others each', list(`{"t":"a","o":${list('{"t":"b","p":-1}', 5)}}`, 16_384)],
  ['2,048 vectors of 1,536 numbers', list(list('-0.01', 1_536), 2_048)],
  ['10,000 members of one object', members(10_000)],
  ['20,000 different names', distinct(1_000)],
  ['many objects with the same names in a few orders', list(orders(100), 1_000)],
])('an answer with %s is not too complex', (_, json) => {
  expect(isTooComplex(json)).toBe(false)
})

/** Nine names in the order that the number gives. */
function shuffled(number: number): readonly string[] {
  const left = Array.from({ length: 9 }, (_, n) => `"n${n}":1`)
  let rest = number
  return Array.from({ length: 9 }, (_, done) => {
    const [name] = left.splice(rest % (9 - done), 1)
    rest = Math.floor(rest / (9 - done))
    return name!
  })
}
