import { expect, test } from 'vitest'
import { EventSkip } from '../../../src/gateway/generations/event-ids.ts'

const events = ['data: "one"\nid: 0\n\n', ': keep-alive\n\n', 'data: "two"\nid: 1\n\n', 'data: "drei ü"\nid: 2\n\n']
const stream = Buffer.from(events.join(''))

/** What a client receives of the stream if it comes in chunks of this size. */
function rest(after: number, size: number): string {
  const skip = new EventSkip(after)
  const parts: Buffer[] = []
  for (let at = 0; at < stream.length; at += size) parts.push(skip.rest(stream.subarray(at, at + size)))
  return Buffer.concat(parts).toString()
}

test('a client receives what follows its last event, wherever the chunks of the stream begin', () => {
  const expected = [events.slice(1).join(''), events.slice(3).join(''), '', '']
  for (let size = 1; size <= stream.length; size += 1)
    for (const [after, text] of expected.entries()) expect(rest(after, size)).toBe(text)
})

test('what follows is not copied: many clients that read slowly share its bytes', () => {
  const skip = new EventSkip(0)
  expect(skip.rest(stream).buffer).toBe(stream.buffer)
  expect(skip.rest(stream)).toBe(stream)
})
