import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { UpstreamError } from '../../src/domain/upstream.ts'
import { maxEventBytes, SseReader, type SseEvent } from '../../src/formats/sse.ts'
import { anyText } from '../any-text.ts'
import { golden } from './exchange.ts'

const longest = maxEventBytes

function read(chunks: readonly (Uint8Array | string)[]): SseEvent[] {
  const reader = new SseReader()
  return [...chunks.flatMap((chunk) => reader.push(chunk)), ...reader.end()]
}

function bytes(text: string): Buffer {
  return Buffer.from(text, 'utf8')
}

/** Splits the bytes at these offsets, in any order and with repetitions. */
function cut(whole: Buffer, places: readonly number[]): Buffer[] {
  const sorted = places.map((place) => place % (whole.length + 1)).sort((a, b) => a - b)
  return [0, ...sorted].map((from, index) => whole.subarray(from, sorted[index] ?? whole.length))
}

describe('server-sent events', () => {
  test('an event has its name, if any, and its joined data lines', () => {
    expect(read([bytes('event: ping\ndata: a\ndata:b\ndata\n\ndata:  c\n\n')])).toEqual([
      { event: 'ping', data: 'a\nb\n' },
      { data: ' c' },
    ])
  })

  test('lines may end with LF, CR, or CRLF, even mixed', () => {
    const expected = [{ event: 'x', data: '1' }, { data: '2' }]
    for (const end of ['\n', '\r', '\r\n']) {
      expect(read([bytes(`event: x${end}data: 1${end}${end}data: 2${end}${end}`)])).toEqual(expected)
    }
    expect(read([bytes('event: x\rdata: 1\r\n\ndata: 2\n\r')])).toEqual(expected)
  })

  test('comments, IDs, retry times, and events without data are skipped', () => {
    expect(read([bytes(': keep-alive\n\nid: 7\nretry: 10\nevent: lost\n\ndata: x\n\n')])).toEqual([{ data: 'x' }])
  })

  test('a byte order mark at the start is skipped, whole or in pieces', () => {
    const marked = Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), bytes('data: x\n\n')])
    expect(read([marked])).toEqual([{ data: 'x' }])
    expect(read(Array.from(marked, (byte) => Uint8Array.of(byte)))).toEqual([{ data: 'x' }])
    expect(read([bytes('data: x\n\n\ufeffdata: y\n\n')])).toEqual([{ data: 'x' }, { data: '', malformed: true }])
  })

  test('an unknown line makes the stream malformed, and an error event needs no data', () => {
    const malformed = { data: '', malformed: true }
    expect(read([bytes('{"error":"x"}\n\n')])).toEqual([malformed])
    expect(read([bytes('error: {"code":500}\n\ndata: x\n\n')])).toEqual([malformed, { data: 'x' }])
    expect(read([bytes('<html>\n<body>\n\n')])).toEqual([malformed])
    expect(read([bytes('data: x\n \n\t\n\n')])).toEqual([{ data: 'x' }])
    expect(read([bytes('event: error\n\n')])).toEqual([{ event: 'error', data: '' }])
  })

  test('[DONE] is read like other data, even if the stream ends without an empty line', () => {
    expect(read([bytes('data: [DONE]\n\n')])).toEqual([{ data: '[DONE]' }])
    expect(read([bytes('data: [DONE]\n')])).toEqual([{ data: '[DONE]' }])
    expect(read([bytes('data: [DONE]')])).toEqual([{ data: '[DONE]' }])
  })

  test('latin1 text is accepted, with one character for each byte', () => {
    expect(read([bytes('data: grün 🌱\n\n').toString('latin1')])).toEqual([{ data: 'grün 🌱' }])
  })

  test('every split of the bytes gives the same events', () => {
    const line = fc.oneof(
      anyText().map((text) => `data: ${text.replaceAll(/[\r\n]/g, '')}`),
      fc.constantFrom('event: a', 'event:', ': comment', 'data', 'id: 1', '', '', 'nonsense', 'data:ü'),
    )
    const stream = fc.array(fc.tuple(line, fc.constantFrom('\n', '\r', '\r\n')), { maxLength: 30 })
    fc.assert(
      fc.property(stream, fc.array(fc.nat(), { maxLength: 40 }), (lines, places) => {
        const whole = bytes(lines.map(([text, end]) => text + end).join(''))
        expect(read(cut(whole, places))).toEqual(read([whole]))
      }),
      { numRuns: 500 },
    )
  })

  test.each(['chat-text.sse', 'chat-tool-call.sse', 'response-text.sse', 'response-reasoning.sse'])(
    'splitting %s into bytes gives the same events',
    (name) => {
      const whole = bytes(golden(name))
      expect(read(Array.from(whole, (byte) => Uint8Array.of(byte)))).toEqual(read([whole]))
    },
  )
})

describe('an event above 1 MiB', () => {
  const expectBroken = (chunks: readonly (Uint8Array | string)[]): void => {
    const error = (() => {
      try {
        read(chunks)
        return undefined
      } catch (thrown) {
        return thrown
      }
    })()
    expect(error).toBeInstanceOf(UpstreamError)
    expect(error).toMatchObject({ outcome: 'broken' })
  }

  test('it is rejected as one line, whole or in pieces', () => {
    const long = `data: ${'x'.repeat(longest)}\n\n`
    expectBroken([bytes(long)])
    expectBroken(cut(bytes(long), [10, 5000, 900_000]))
  })

  test('it is rejected as many lines', () => {
    expectBroken([bytes(`${`data: ${'x'.repeat(1000)}\n`.repeat(longest / 1000)}\n`)])
  })

  test('it is rejected as a line that never ends', () => {
    expectBroken(Array.from({ length: longest / 1024 + 1 }, () => 'x'.repeat(1024)))
  })

  test('a slightly smaller event is accepted, any number of times', () => {
    const data = 'x'.repeat(longest - 10)
    expect(read([bytes(`data: ${data}\n\n`.repeat(3))])).toEqual([{ data }, { data }, { data }])
  })
})

test('reading takes linear time: a line in 1,000,000 pieces is read within three seconds', () => {
  const reader = new SseReader()
  const started = performance.now()
  for (let index = 0; index < 1_000_000; index++) reader.push('x')
  expect(reader.push('\n\n')).toEqual([{ data: '', malformed: true }])
  expect(performance.now() - started).toBeLessThan(3000)
})
