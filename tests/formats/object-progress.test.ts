import { array, assert, constantFrom, integer, json, oneof, property, string } from 'fast-check'
import { expect, test } from 'vitest'
import { ObjectProgress } from '../../src/formats/object-progress.ts'

function isObject(text: string): boolean {
  try {
    return JSON.parse(text) !== null && text.trim().startsWith('{')
  } catch {
    return false
  }
}

test('after each piece, it is known whether the pieces so far form a complete object', () => {
  const object = json().map((text) => `{"a":${text}}`)
  const odd = string({ unit: constantFrom('{', '}', '[', ']', '"', '\\', 'a', ':', ' ') })
  assert(
    property(array(oneof(object, odd), { maxLength: 3 }), integer({ min: 1, max: 5 }), (texts, size) => {
      const text = texts.join('')
      const progress = new ObjectProgress()
      for (let from = 0; from < text.length; from += size) {
        const soFar = text.slice(0, from + size)
        progress.add(text.slice(from, from + size))
        expect(progress.hasEnded(() => soFar)).toBe(isObject(soFar))
      }
    }),
  )
})

test('the text is read once, however many pieces follow', () => {
  const progress = new ObjectProgress()
  let reads = 0
  const text = (): string => {
    reads += 1
    return '{x}'
  }
  progress.add('{x}')
  for (let piece = 0; piece < 100; piece += 1) {
    progress.add(' ')
    expect(progress.hasEnded(text)).toBe(false)
  }
  expect(reads).toBe(1)
})
