import { expect, test } from 'vitest'
import { BoundedMap } from '../../src/runtime/bounded-map.ts'

test('one too many pushes out the first, and only that one', () => {
  const map = new BoundedMap<string, number>(2).set('a', 1).set('b', 2).set('c', 3)
  expect([...map]).toEqual([
    ['b', 2],
    ['c', 3],
  ])
})

test('what is set again keeps its place and pushes nothing out', () => {
  const map = new BoundedMap<string, number>(2).set('a', 1).set('b', 2).set('a', 3)
  expect([...map.keys()]).toEqual(['a', 'b'])
  expect(map.get('a')).toBe(3)
  expect([...map.set('c', 4).keys()]).toEqual(['b', 'c'])
})

test('what is put last outlives what was put before it', () => {
  const map = new BoundedMap<string, number>(2).set('a', 1).set('b', 2)
  map.setLast('a', 1)
  expect([...map.set('c', 3).keys()]).toEqual(['a', 'c'])
})
