import { describe, expect, test } from 'vitest'
import { SessionTable, type KnownSession } from '../../../src/gateway/cache/session-table.ts'

const session = (items = 0): KnownSession => ({
  updatedMs: 0,
  branches: [
    {
      prompt: {
        tools: 0,
        system: 0,
        settings: 0,
        items: Array(items).fill(1),
        count: items,
        raw: 0,
        rawLength: 0,
        ends: [0, 0, 0],
      },
      holders: [],
      turns: 1,
    },
  ],
})

describe('the sessions in memory', () => {
  test('of one account are bounded, and its oldest one is forgotten first', () => {
    const table = new SessionTable(64_000, 640)
    for (let index = 0; index < 11; index++) table.set('a', `s${index}`, session())
    expect(table.count('a')).toBe(10)
    expect(table.get('a', 's0')).toBeUndefined()
    table.set('a', 's1', session())
    table.set('a', 's11', session())
    expect(table.get('a', 's1')).toBeDefined()
    expect(table.get('a', 's2')).toBeUndefined()
  })

  test('of an account that floods the table displace no session of another account', () => {
    const table = new SessionTable(6_400, 6_400)
    for (let index = 0; index < 20; index++) table.set(`quiet ${index}`, 's', session())
    for (let index = 0; index < 10_000; index++) table.set('hostile', `s${index}`, session())
    for (let index = 0; index < 20; index++) expect(table.get(`quiet ${index}`, 's')).toBeDefined()
    expect(table.weight).toBeLessThanOrEqual(6_400)
  })

  test('count by the digests that they hold, so that long conversations cannot fill the memory', () => {
    const table = new SessionTable(100_000, 100_000)
    for (let index = 0; index < 1_000; index++) table.set('hostile', `s${index}`, session(1_024))
    expect(table.weight).toBeLessThanOrEqual(100_000)
    expect(table.count('hostile')).toBeGreaterThan(40)
  })

  test('of many accounts with one session each stay bounded', () => {
    const table = new SessionTable(6_400, 640)
    for (let index = 0; index < 1_000; index++) table.set(`a${index}`, 's', session())
    expect(table.weight).toBeLessThanOrEqual(6_400)
    expect(table.get('a999', 's')).toBeDefined()
    expect(table.get('a0', 's')).toBeUndefined()
  })
})

describe('how often conversations go on', () => {
  test('is counted by account and opening, and the latest ones decide', () => {
    const table = new SessionTable()
    table.set('a', 's', session())
    expect(table.openings('a', 1)).toEqual({ began: 0, wentOn: 0 })
    table.began('a', 1)
    table.wentOn('a', 1)
    table.began('a', 1)
    expect(table.openings('a', 1)).toEqual({ began: 2, wentOn: 1 })
    expect(table.openings('a', 2)).toEqual({ began: 0, wentOn: 0 })
    expect(table.openings('b', 1)).toEqual({ began: 0, wentOn: 0 })
    for (let count = 0; count < 200; count++) table.wentOn('a', 1)
    for (let count = 0; count < 60; count++) table.began('a', 1)
    const { began, wentOn } = table.openings('a', 1)
    expect(wentOn / began).toBeLessThan(0.3)
  })

  test('is known of a bounded number of openings', () => {
    const table = new SessionTable()
    table.set('a', 's', session())
    for (let opening = 0; opening < 33; opening++) table.began('a', opening)
    expect(table.openings('a', 0)).toEqual({ began: 0, wentOn: 0 })
    expect(table.openings('a', 1)).toEqual({ began: 1, wentOn: 0 })
  })
})
