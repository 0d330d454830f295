import { expect, test } from 'vitest'
import { Slots } from '../../src/runtime/slots.ts'

test('a number names one value until it is removed, and then another', () => {
  const slots = new Slots<string>()
  const [a, b, c] = [slots.add('a'), slots.add('b'), slots.add('c')]
  expect(new Set([a, b, c]).size).toBe(3)
  slots.remove(b)
  expect(slots.get(b)).toBeUndefined()
  expect([slots.get(a), slots.get(c), slots.get(99)]).toEqual(['a', 'c', undefined])
  expect(slots.size).toBe(2)
  expect(slots.add('d')).toBe(b)
  slots.set(b, 'e')
  expect(slots.all()).toEqual(['a', 'e', 'c'])
  expect(slots.add('f')).toBe(3)
  expect(slots.size).toBe(4)
})
