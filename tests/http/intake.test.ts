import { expect, test } from 'vitest'
import { Intake, type AnsweringShare } from '../../src/http/request-intake.ts'

const MiB = 1024 * 1024
/** The longest that a whole answer may be. */
const longest = 32 * MiB

test('whole answers of one account take at most four fifths of their bytes, and leave room for one of another', () => {
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
  // Twice gives nothing back twice, and after the end nothing is counted.
  for (const share of held) {
    share[Symbol.dispose]()
    share[Symbol.dispose]()
    share.grow(longest)
  }
  for (let count = 0; count < 6; count += 1) receive('greedy')
})
