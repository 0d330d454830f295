import { expect, test } from 'vitest'
import { BoundedMap } from '../../src/runtime/bounded-map.ts'

test('an entry above the limit evicts only the first one', () => {
  const map = new BoundedMap<string, number>(2).set('a', 1).set('b', 2).set('c', 3)
  expect([...map]).toEqual([
    ['b', 2],
    ['c', 3],
  ])
})

test('setting an existing key keeps its position and evicts nothing', () => {
  const map = new BoundedMap<string, number>(2).set('a', 1).set('b', 2).set('a', 3)
  expect([...map.keys()]).toEqual(['a', 'b'])
  expect(map.get('a')).toBe(3)
  expect([...map.set('c', 4).keys()]).toEqual(['b', 'c'])
})

test('an entry that was moved to the end outlives earlier ones', () => {
  const map = new BoundedMap<string, number>(2).set('a', 1).set('b', 2)
  map.setLast('a', 1)
  expect([...map.set('c', 3).keys()]).toEqual(['a', 'c'])
})
