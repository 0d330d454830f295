import { array, assert, boolean, nat, property, tuple } from 'fast-check'
import { expect, test } from 'vitest'
import { Bag } from '../../src/domain/bag.ts'

test('a bag holds what a set would, whatever comes and goes', () => {
  const steps = array(tuple(boolean(), nat(9)), { maxLength: 200 })
  assert(
    property(steps, (changes) => {
      const items = Array.from({ length: 10 }, () => ({ place: -1 }))
      const bag = new Bag<{ place: number }>()
      const set = new Set<{ place: number }>()
      for (const [isAdded, index] of changes) {
        const item = items[index]!
        if (isAdded && !set.has(item)) bag.add(item)
        if (!isAdded) bag.delete(item)
        if (isAdded) set.add(item)
        else set.delete(item)
        expect(bag.size).toBe(set.size)
        expect(new Set(bag.all())).toEqual(set)
      }
    }),
  )
})

test('what lies in one bag is not taken out of another', () => {
  const item = { place: -1 }
  const [here, there] = [new Bag<{ place: number }>(), new Bag<{ place: number }>()]
  here.add(item)
  there.add({ place: -1 })
  there.delete(item)
  expect([here.size, there.size]).toEqual([1, 1])
})
