import { array, assert, constantFrom, property } from 'fast-check'
import { expect, test } from 'vitest'
import { Earliest } from '../../src/formats/earliest.ts'

test('the earliest of several is found from every place on, as one expression over all of them would', () => {
  const earliest = new Earliest([/b+c/g, 'ca', /a\s*d/g])
  const texts = array(constantFrom('a', 'b', 'c', 'd', ' '), { maxLength: 60 })
  assert(
    property(texts, (letters) => {
      const text = letters.join('')
      earliest.reset()
      for (let from = 0; from <= text.length; from += 1) {
        const all = /b+c|ca|a\s*d/g
        all.lastIndex = from
        expect(earliest.find(text, from)).toBe(all.exec(text)?.index ?? -1)
      }
    }),
    { numRuns: 1_000 },
  )
})
