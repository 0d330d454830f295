import { expect, test } from 'vitest'
import { SharedReads } from '../../src/runtime/shared-reads.ts'

function countedReads(): { reads: PromiseWithResolvers<number>[]; read: () => Promise<number> } {
  const reads: PromiseWithResolvers<number>[] = []
  const read = (): Promise<number> => {
    const started = Promise.withResolvers<number>()
    reads.push(started)
    return started.promise
  }
  return { reads, read }
}

test('everybody who asks during a read shares the next one, which starts when that read has ended', async () => {
  const shared = new SharedReads<number>()
  const { reads, read } = countedReads()
  const first = shared.read('one', read)
  const others = Array.from({ length: 1_000 }, () => shared.read('one', read))
  expect(reads).toHaveLength(1)
  reads[0]!.resolve(1)
  expect(await first).toBe(1)
  await expect.poll(() => reads.length).toBe(2)
  reads[1]!.resolve(2)
  expect(new Set(await Promise.all(others))).toEqual(new Set([2]))
  const later = shared.read('one', read)
  expect(reads).toHaveLength(3)
  reads[2]!.resolve(3)
  expect(await later).toBe(3)
})

test('a read that fails does not fail those who asked during it', async () => {
  const shared = new SharedReads<number>()
  const { reads, read } = countedReads()
  const first = shared.read('one', read)
  const second = shared.read('one', read)
  reads[0]!.reject(new Error('gone'))
  await expect(first).rejects.toThrow('gone')
  await expect.poll(() => reads.length).toBe(2)
  reads[1]!.resolve(2)
  expect(await second).toBe(2)
})

test('reads of other names start at once', () => {
  const shared = new SharedReads<number>()
  const { reads, read } = countedReads()
  void shared.read('one', read)
  void shared.read('two', read)
  expect(reads).toHaveLength(2)
})
