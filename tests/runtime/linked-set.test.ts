import { array, assert, boolean, nat, property, tuple } from 'fast-check'
import { expect, test } from 'vitest'
import { LinkedEntry, LinkedSet } from '../../src/runtime/linked-set.ts'

class Item extends LinkedEntry {}

test('after random additions and removals, the set has the entries and the order of a Set', () => {
  const steps = array(tuple(boolean(), nat(9)), { maxLength: 200 })
  assert(
    property(steps, (changes) => {
      const items = Array.from({ length: 10 }, () => new Item())
      const linked = new LinkedSet<Item>()
      const set = new Set<Item>()
      for (const [isAdded, index] of changes) {
        const item = items[index]!
        if (isAdded && !set.has(item)) linked.add(item)
        if (!isAdded) linked.delete(item)
        if (isAdded) set.add(item)
        else set.delete(item)
        expect(linked.has(item)).toBe(set.has(item))
        expect(linked.first).toBe([...set][0])
        expect(linked.isEmpty).toBe(set.size === 0)
        expect([...linked].map((one) => items.indexOf(one))).toEqual([...set].map((one) => items.indexOf(one)))
      }
    }),
  )
})

test('the current entry can be deleted while the set is read', () => {
  const items = [new Item(), new Item(), new Item()]
  const linked = new LinkedSet<Item>()
  for (const item of items) linked.add(item)
  const read: Item[] = []
  for (const item of linked) {
    read.push(item)
    linked.delete(item)
  }
  expect(read).toEqual(items)
  expect(linked.isEmpty).toBe(true)
})
