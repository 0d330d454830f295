import { expect, test } from 'vitest'
import { Intake, type AnsweringShare } from '../../src/http/request-intake.ts'

const MiB = 1024 * 1024
/** The largest non-streaming answer. */
const longest = 32 * MiB

test('the non-streaming answers of one account use at most four fifths of the bytes, and leave room for another account', () => {
  const intake = new Intake({ bodyBytes: 5 * MiB, streams: 4_000 })
  const held: AnsweringShare[] = []
  const receive = (account: string): AnsweringShare => {
    const share = intake.answer(account, 1_000)
    held.push(share)
    for (let bytes = 0; bytes < longest; bytes += MiB) share.grow(MiB)
    return share
  }
  for (let count = 0; count < 6; count += 1) receive('greedy')
  expect(() => receive('greedy')).toThrow(expect.objectContaining({ code: 'server_busy' }) as Error)
  receive('other')[Symbol.dispose]()
  // Disposing twice returns the bytes only once, and growing afterwards counts nothing.
  for (const share of held) {
    share[Symbol.dispose]()
    share[Symbol.dispose]()
    share.grow(longest)
  }
  for (let count = 0; count < 6; count += 1) receive('greedy')
})
