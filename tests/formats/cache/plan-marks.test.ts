import { describe, expect, test } from 'vitest'
import type { CacheLifetime } from '../../../src/domain/conversation.ts'
import { planMarks, type CacheBlock, type CacheOutline } from '../../../src/formats/cache/plan-marks.ts'

const plain: CacheBlock = { isMarkable: true }
const never: CacheBlock = { isMarkable: false }
const marked = (lifetime: CacheLifetime): CacheBlock => ({ isMarkable: false, lifetime })

/** A prompt of tools, instructions, and messages; `answerStart` counts messages. */
function outline(
  tools: readonly CacheBlock[],
  system: readonly CacheBlock[],
  messages: readonly CacheBlock[],
  answerStart?: number,
): CacheOutline {
  const blocks = [...tools, ...system, ...messages]
  const systemEnd = tools.length + system.length
  return {
    blocks,
    toolsEnd: tools.length,
    systemEnd,
    forcesCall: false,
    answerStart: answerStart === undefined ? undefined : systemEnd + answerStart,
    end: blocks.length,
    taken: blocks.filter(({ lifetime }) => lifetime !== undefined).length,
  }
}

const unknown = { isSeen: false, isExpected: false, began: 0, wentOn: 0 }
const agent = { continuation: { ...unknown, isExpected: true } }
const seen = { continuation: { ...unknown, isSeen: true } }

const positions = (of: CacheOutline, options?: Parameters<typeof planMarks>[1]) =>
  planMarks(of, options).marks.map(({ at, reason }) => [at, reason])

describe('which blocks are marked', () => {
  test('the tools, the instructions, where the previous request ended, and the end of the request', () => {
    expect(positions(outline([plain, plain], [plain], [plain, plain, plain], 1))).toEqual([
      [1, 'tools'],
      [2, 'instructions'],
      [3, 'previous request'],
      [5, 'request'],
    ])
  })

  test('a request without tools only if its session was seen before', () => {
    const single = outline([], [plain], [plain])
    expect(planMarks(single)).toEqual({ marks: [], reason: 'not read again' })
    expect(planMarks(single, agent)).toEqual({ marks: [], reason: 'not read again' })
    expect(positions(single, seen)).toEqual([
      [0, 'instructions'],
      [1, 'request'],
    ])
  })

  test('the first request with tools only of an agent; later ones of all clients', () => {
    const first = outline([plain], [plain], [plain])
    expect(planMarks(first)).toEqual({ marks: [], reason: 'not read again' })
    expect(planMarks(first, { continuation: unknown })).toEqual({ marks: [], reason: 'not read again' })
    expect(positions(first, agent)).toHaveLength(3)
    expect(positions(outline([plain], [plain], [plain, plain, plain], 1))).toHaveLength(4)
  })

  test('a request that must begin with a call only if its session was seen before', () => {
    const forced = { ...outline([plain], [plain], [plain]), forcesCall: true }
    expect(planMarks(forced, agent)).toEqual({ marks: [], reason: 'not read again' })
    expect(positions(forced, seen)).toHaveLength(3)
    expect(positions({ ...outline([plain], [plain], [plain, plain, plain], 1), forcesCall: true })).toHaveLength(4)
  })

  test('what such conversations of the account did decides, if there were any', () => {
    const isMarked = (isExpected: boolean, began: number, wentOn: number, tools = [plain]) =>
      positions(outline(tools, [plain], [plain]), { continuation: { isSeen: false, isExpected, began, wentOn } })
        .length > 0
    expect([isMarked(true, 2, 0), isMarked(true, 3, 0)]).toEqual([true, false])
    expect([isMarked(false, 1, 1), isMarked(false, 2, 1), isMarked(false, 3, 1)]).toEqual([true, true, false])
    expect([isMarked(false, 20, 6), isMarked(false, 20, 5)]).toEqual([true, false])
    expect(isMarked(false, 1, 1, [])).toBe(true)
  })

  test('the last block that takes a mark, instead of one that does not', () => {
    expect(positions(outline([plain, never], [], [plain, never, never]), seen)).toEqual([
      [0, 'tools'],
      [2, 'request'],
    ])
  })

  test('a long turn gets one more mark, so that the next request finds it', () => {
    const messages = Array.from({ length: 46 }, () => plain)
    expect(positions(outline([plain], [plain], messages, 1))).toEqual([
      [1, 'instructions'],
      [2, 'previous request'],
      [31, 'long turn'],
      [47, 'request'],
    ])
  })

  test('a new task: where the model began to work on the one before', () => {
    const messages = Array.from({ length: 9 }, () => plain)
    expect(positions({ ...outline([plain], [plain], messages, 7), earlierTask: 5 })).toEqual([
      [1, 'instructions'],
      [4, 'earlier task'],
      [8, 'previous request'],
      [10, 'request'],
    ])
  })
})

describe('marks of the caller', () => {
  test('four leave none', () => {
    const four = outline([marked('5m')], [marked('5m')], [marked('5m'), plain, marked('5m')])
    expect(planMarks(four, seen)).toEqual({ marks: [], reason: 'no mark left' })
  })

  test('the end of messages that the caller marks is the caller’s', () => {
    expect(positions(outline([plain], [marked('5m')], [plain, plain, marked('5m')], 1))).toEqual([])
    const long = Array.from({ length: 30 }, () => plain)
    expect(positions(outline([plain], [marked('5m')], [...long, marked('5m')], 1))).toEqual([
      [2, 'previous request'],
      [16, 'long turn'],
    ])
  })

  test('a mark before one for an hour lasts an hour, and all others 5 minutes', () => {
    const lifetimes = (of: CacheOutline) => planMarks(of, seen).marks.map((mark) => mark.lifetime)
    expect(lifetimes(outline([plain], [plain], [marked('1h'), plain], 1))).toEqual(['1h'])
    expect(lifetimes(outline([plain], [marked('1h')], [plain]))).toEqual(['5m'])
    expect(lifetimes(outline([plain], [plain], [plain]))).toEqual(['5m', '5m', '5m'])
  })
})
