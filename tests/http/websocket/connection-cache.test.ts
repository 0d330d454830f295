import { describe, expect, test } from 'vitest'
import { ConnectionCache, CacheBudget, replayHistory } from '../../../src/http/websocket/connection-cache.ts'

const budget = (): CacheBudget => new CacheBudget(1_000)

describe('the history of a connection', () => {
  test('it is replayed from its beginning, whichever answer is continued', () => {
    const memory = new ConnectionCache(budget(), 1_000, 'acc')
    memory.set('a', '1', { storedId: 'resp_stored' })
    memory.set('b', '2', { before: memory.find('a') })
    memory.set('c', '', { before: memory.find('b') })
    memory.set('d', '3', { before: memory.find('c') })
    memory.set('e', '4', { before: memory.find('b') })
    expect(replayHistory(memory.find('d')!)).toEqual({ text: '1,2,3', storedId: 'resp_stored' })
    expect(replayHistory(memory.find('e')!)).toEqual({ text: '1,2,4', storedId: 'resp_stored' })
  })

  test('it stays available to later answers if an earlier one is deleted', () => {
    const memory = new ConnectionCache(budget(), 1_000, 'acc')
    memory.set('a', '1', {})
    memory.set('b', '2', { before: memory.find('a') })
    memory.delete('a')
    expect(memory.find('a')).toBeUndefined()
    expect(replayHistory(memory.find('b')!).text).toBe('1,2')
  })

  test('an answer is not cached if the answer before it was cleared in the meantime', () => {
    const memory = new ConnectionCache(budget(), 1_000, 'acc')
    memory.set('a', '1', {})
    const before = memory.find('a')
    memory.clear()
    memory.set('b', '2', { before })
    expect(memory.find('b')).toBeUndefined()
  })

  test('an answer is not cached if its history exceeds the size of one request', () => {
    const memory = new ConnectionCache(budget(), 10, 'acc')
    memory.set('a', 'x'.repeat(6), {})
    memory.set('b', 'x'.repeat(6), { before: memory.find('a') })
    expect([memory.find('a'), memory.find('b')].map((found) => found?.chars)).toEqual([6, undefined])
  })

  test('it is complete even if a backend uses an ID twice', () => {
    const memory = new ConnectionCache(budget(), 1_000, 'acc')
    memory.set('a', '1', {})
    memory.set('a', '2', { before: memory.find('a') })
    expect(replayHistory(memory.find('a')!).text).toBe('1,2')
  })
})

describe('limits', () => {
  test('the last 32 answers of a connection can be continued', () => {
    const memory = new ConnectionCache(budget(), 1_000, 'acc')
    for (let index = 0; index < 100; index++) memory.set(`${index}`, 'x', {})
    expect(memory.find('67')).toBeUndefined()
    expect(memory.find('68')).toBeDefined()
  })

  test('a chain of more than a thousand answers cannot be continued', () => {
    const memory = new ConnectionCache(new CacheBudget(), 1_000_000, 'acc')
    memory.set('0', 'x', {})
    for (let index = 1; index <= 1_000; index++) memory.set(`${index}`, 'x', { before: memory.find(`${index - 1}`) })
    expect(memory.find('999')?.links).toBe(1_000)
    expect(memory.find('1000')).toBeUndefined()
  })

  test('the connection that was idle longest is evicted first', () => {
    const all = budget()
    const [idle, busy, last] = [0, 1, 2].map(() => new ConnectionCache(all, 1_000, 'acc')) as [
      ConnectionCache,
      ConnectionCache,
      ConnectionCache,
    ]
    busy.set('a', 'x'.repeat(400), {})
    idle.set('a', 'x'.repeat(400), {})
    busy.find('a')
    last.set('a', 'x'.repeat(400), {})
    expect([idle, busy, last].map((memory) => memory.find('a') !== undefined)).toEqual([false, true, true])
    expect(all.chars).toBe(800)
  })

  test('the budget is empty after all connections have closed, whatever they cached and deleted', () => {
    const all = new CacheBudget(5_000)
    const memories = Array.from({ length: 5 }, () => new ConnectionCache(all, 2_000, 'acc'))
    let seed = 7
    const random = (below: number): number => {
      seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648
      return seed % below
    }
    for (let step = 0; step < 20_000; step++) {
      const memory = memories[random(5)]!
      const [id, previous] = [`${random(60)}`, `${random(60)}`]
      if (random(50) === 0) memory.clear()
      else if (random(5) === 0) memory.delete(id)
      else memory.set(id, 'x'.repeat(random(200)), { before: memory.find(previous) })
      expect(all.chars).toBeGreaterThanOrEqual(0)
      expect(all.chars).toBeLessThanOrEqual(5_000)
    }
    for (const memory of memories) memory.clear()
    expect(all.chars).toBe(0)
  })
})
