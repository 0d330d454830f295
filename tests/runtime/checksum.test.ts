import { expect, test } from 'vitest'
import { textChecksum } from '../../src/runtime/checksum.ts'

const lengths = [0, 1, 63, 64, 65, 300]
const ofLength = (length: number): string => 'Ünïcode. '.repeat(40).slice(0, length)

test.each(lengths)('the checksum of a text of %i characters changes with every character', (length) => {
  const text = ofLength(length)
  const sum = textChecksum(text)
  expect(sum).toBe(textChecksum(ofLength(length)))
  expect(sum).toBeGreaterThanOrEqual(0)
  expect(sum).toBeLessThan(2 ** 32)
  for (let at = 0; at < length; at += 1)
    expect(textChecksum(`${text.slice(0, at)}#${text.slice(at + 1)}`), `at ${at}`).not.toBe(sum)
})

test('fields that are divided differently have different checksums', () => {
  const all = 'x'.repeat(200)
  const sums = new Set<number>()
  for (let at = 0; at <= all.length; at += 1) sums.add(textChecksum(all.slice(at), textChecksum(all.slice(0, at))))
  expect(sums.size).toBe(all.length + 1)
})
