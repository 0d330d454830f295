import { describe, expect, test, vi } from 'vitest'
import { findStreamId } from '../../../src/http/websocket/find-stream-id.ts'

const long = 'x'.repeat(300_000)
const find = (text: string, spend = (): boolean => true) => findStreamId(Buffer.from(text), spend)

describe('the stream_id of an unread message (contract 14.7)', () => {
  test.each([
    ['{"stream_id":"a.1","input":"x"}', 'a.1'],
    ['{ "input" : "x" , "stream_id" : "a" }', 'a'],
    ['{"metadata":{"stream_id":"b"},"stream_id":"a","tools":[{"stream_id":"c"}]}', 'a'],
    ['{"stream_id":"a","input":', 'a'],
    [`{"stream_id":"a","n":${'['.repeat(200)}"stream_id"`, 'a'],
    ['{"metadata":{"stream_id":"b"}}', undefined],
    ['{"input":"\\"stream_id\\":\\"b\\","}', undefined],
    ['{"stream_id":"a","stream_id":"b"}', undefined],
    ['{"stream_id":5}', undefined],
    ['{"stream_id":null}', undefined],
    ['{"stream_id":"not valid"}', undefined],
    [`{"stream_id":"${'a'.repeat(257)}"}`, undefined],
    ['{"stream_id":"a', undefined],
    ['{"input":"x"}', undefined],
    ['', undefined],
  ])('%s', (text, id) => {
    expect(find(text)).toBe(id)
  })

  test('a long message is scanned in several turns, as far as needed', async () => {
    const spend = vi.fn(() => true)
    const text = `{"input":"${long}","stream_id":"a","more":"${long}"}`
    expect(await find(text, spend)).toBe('a')
    expect(spend).toHaveBeenCalledExactlyOnceWith(expect.closeTo(301_000, -3))
    expect(find(`{"stream_id":"a","input":"${long}"}`, spend)).toBe('a')
    expect(spend).toHaveBeenCalledOnce()
  })

  test('only the start of a long message is scanned for an account that may cause no more work', () => {
    const spend = (): boolean => false
    expect(find(`{"input":"${long}","stream_id":"a"}`, spend)).toBeUndefined()
    expect(find(`{"stream_id":"a","input":"${long}","x":{"stream_id":1}}`, spend)).toBe('a')
  })
})
