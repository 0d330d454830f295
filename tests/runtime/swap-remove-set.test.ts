import { array, assert, boolean, nat, property, tuple } from 'fast-check'
import { expect, test } from 'vitest'
import { SetEntry, SwapRemoveSet } from '../../src/runtime/swap-remove-set.ts'

class Item extends SetEntry {
  readonly number: number

  constructor(number: number) {
    super()
    this.number = number
  }
}

test('after random additions and removals, the set equals a Set', () => {
  const steps = array(tuple(boolean(), nat(9)), { maxLength: 200 })
  assert(
    property(steps, (changes) => {
      const items = Array.from({ length: 10 }, (_, number) => new Item(number))
      const swapping = new SwapRemoveSet<Item>()
      const set = new Set<Item>()
      for (const [isAdded, index] of changes) {
        const item = items[index]!
        if (isAdded && !set.has(item)) swapping.add(item)
        if (!isAdded) swapping.delete(item)
        if (isAdded) set.add(item)
        else set.delete(item)
        expect(swapping.size).toBe(set.size)
        expect(items.filter((one) => swapping.has(one))).toEqual(items.filter((one) => set.has(one)))
        expect(new Set(swapping.all())).toEqual(set)
      }
    }),
  )
})

test('removing an entry of another set does nothing', () => {
  const item = new Item(1)
  const [here, there] = [new SwapRemoveSet<Item>(), new SwapRemoveSet<Item>()]
  here.add(item)
  there.add(new Item(2))
  there.delete(item)
  expect([here.has(item), there.has(item), here.size, there.size]).toEqual([true, false, 1, 1])
})

test('code outside of the set cannot reach the position of an entry by name', () => {
  expect(Object.keys(new Item(1))).toEqual(['number'])
})
