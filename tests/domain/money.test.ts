import { expect, test } from 'vitest'
import { fromDollars, inDollars, readAmount, readDollars, writeDollars, writeUsd } from '../../src/domain/money.ts'

test('dollars that a provider wrote become exact picodollars, and come back with the same digits', () => {
  for (const [dollars, picodollars] of [
    [0, 0n],
    [1, 1_000_000_000_000n],
    [0.1, 100_000_000_000n],
    [0.00014775, 147_750_000n],
    [1e-12, 1n],
    [123_456.789, 123_456_789_000_000_000n],
  ] as const) {
    expect(fromDollars(dollars)).toBe(picodollars)
    expect(Number(writeDollars(picodollars))).toBe(dollars)
  }
})

test('less than a picodollar is rounded up, so that no cost becomes 0', () => {
  expect(fromDollars(1e-13)).toBe(1n)
  expect(fromDollars(1.5e-12)).toBe(2n)
})

test('what is not an amount is undefined', () => {
  for (const value of [-1, Number.NaN, Infinity, 1e7, '1', null, undefined]) expect(fromDollars(value)).toBeUndefined()
  for (const text of ['', '-1', '1.5', '1e3', '9'.repeat(31), 5, undefined]) expect(readAmount(text)).toBeUndefined()
  expect(readAmount('0012')).toBe(12n)
})

test('amounts are written exactly for programs, and with four decimals below a dollar and two from there on for people', () => {
  expect(writeDollars(0n)).toBe('0')
  expect(writeDollars(1n)).toBe('0.000000000001')
  expect(writeDollars(12_340_000_000_000n)).toBe('12.34')
  expect(writeUsd(0n)).toBe('0 USD')
  expect(writeUsd(1n)).toBe('less than 0.0001 USD')
  expect(writeUsd(31_249_999_999n)).toBe('0.0312 USD')
  expect(writeUsd(31_250_000_000n)).toBe('0.0313 USD')
  expect(writeUsd(999_999_999_999n)).toBe('1.0000 USD')
  expect(writeUsd(1_000_000_000_000n)).toBe('1.00 USD')
  expect(writeUsd(187_456_500_000_000n)).toBe('187.46 USD')
  expect(writeUsd(1_234_567_004_999_999_999n)).toBe('1,234,567.00 USD')
  expect(inDollars(2_500_000_000_000n)).toBe(2.5)
})

test('written dollars are read back exactly, negative ones too', () => {
  for (const amount of [0n, 1n, 10n ** 12n, 123_456_789_012_345n, -7n, -(10n ** 20n) - 1n])
    expect(readDollars(writeDollars(amount))).toBe(amount)
  for (const text of ['', '.5', '1.', '1e3', '0.0000000000001', '--1']) expect(readDollars(text)).toBeUndefined()
  expect(writeUsd(-31_250_000_000n)).toBe('-0.0313 USD')
  expect(writeUsd(0.03125)).toBe('0.0313 USD')
})
