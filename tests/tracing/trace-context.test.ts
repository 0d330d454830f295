import { expect, test } from 'vitest'
import { systemRandom } from '../../src/runtime/random.ts'
import { newSpanId, newTraceId, readTraceparent, writeTraceparent } from '../../src/tracing/trace-context.ts'

const traceId = '4bf92f3577b34da6a3ce929d0e0e4736'
const spanId = '00f067aa0ba902b7'

test('a traceparent is read as it is written', () => {
  for (const isSampled of [true, false])
    expect(readTraceparent(writeTraceparent(traceId, spanId, isSampled))).toEqual({ traceId, spanId, isSampled })
})

test('a later version with more fields is read', () => {
  expect(readTraceparent(`cc-${traceId}-${spanId}-01-what-the-future-will-be`)).toMatchObject({ traceId, spanId })
})

test('anything else starts a new trace', () => {
  const headers = [
    undefined,
    '',
    `00-${traceId}-${spanId}`,
    `00-${traceId}-${spanId}-01-more`,
    `ff-${traceId}-${spanId}-01`,
    `00-${traceId.toUpperCase()}-${spanId}-01`,
    `00-${'0'.repeat(32)}-${spanId}-01`,
    `00-${traceId}-${'0'.repeat(16)}-01`,
    `00-${traceId}-${spanId}-0x`,
    `00-${traceId}-${spanId}-01, 00-${traceId}-${spanId}-01`,
    `cc-${traceId}-${spanId}-01-${'x'.repeat(1_000_000)}`,
    `00-${traceId}-${spanId}-01\r\nx: y`,
  ]
  for (const header of headers) expect(readTraceparent(header), header?.slice(0, 80)).toBeUndefined()
})

test('new IDs have the right length and are never all zeros', () => {
  expect([newTraceId(systemRandom()), newSpanId(systemRandom())]).toEqual([
    expect.stringMatching(/^[0-9a-f]{32}$/),
    expect.stringMatching(/^[0-9a-f]{16}$/),
  ])
  let calls = 0
  const firstZeros = (count: number): Uint8Array => new Uint8Array(count).fill(calls++)
  expect(newSpanId(firstZeros)).toBe('01'.repeat(8))
})
