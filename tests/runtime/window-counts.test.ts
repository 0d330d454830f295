import { describe, expect, test } from 'vitest'
import { WindowCounts } from '../../src/runtime/window-counts.ts'

describe('counts in fixed windows', () => {
  test('restart with each window, per name, and report its end', () => {
    const counts = new WindowCounts(1000, 10)
    expect(counts.add('a', 1000)).toEqual({ count: 1, endsAtMs: 2000 })
    expect(counts.add('a', 1999)).toEqual({ count: 2, endsAtMs: 2000 })
    expect(counts.add('b', 1999)).toEqual({ count: 1, endsAtMs: 2000 })
    expect(counts.add('a', 2000)).toEqual({ count: 1, endsAtMs: 3000 })
  })

  test('drop the name that was counted longest ago', () => {
    const counts = new WindowCounts(1000, 2)
    for (const name of ['a', 'b', 'a', 'c']) counts.add(name, 0)
    expect(counts.add('a', 0).count).toBe(3)
    expect(counts.add('b', 0).count).toBe(1)
  })
})
