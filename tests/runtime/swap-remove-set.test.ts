import { array, assert, boolean, nat, property, tuple } from 'fast-check'
import { expect, test } from 'vitest'
import { SwapRemoveSet } from '../../src/runtime/swap-remove-set.ts'

test('after random additions and removals, the set equals a Set', () => {
  const steps = array(tuple(boolean(), nat(9)), { maxLength: 200 })
  assert(
    property(steps, (changes) => {
      const items = Array.from({ length: 10 }, () => ({ setIndex: -1 }))
      const bag = new SwapRemoveSet<{ setIndex: number }>()
      const set = new Set<{ setIndex: number }>()
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

test('removing an entry of another set does nothing', () => {
  const item = { setIndex: -1 }
  const [here, there] = [new SwapRemoveSet<{ setIndex: number }>(), new SwapRemoveSet<{ setIndex: number }>()]
  here.add(item)
  there.add({ setIndex: -1 })
  there.delete(item)
  expect([here.size, there.size]).toEqual([1, 1])
})
