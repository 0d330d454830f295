import type { RandomBytes } from '../runtime/random.ts'

const traceBytes = 16
const spanBytes = 8
const shape = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?$/
const invalidVersion = 'ff'

/** Where a caller is in its trace, from its `traceparent` header. */
export interface ParentContext {
  /** 32 hexadecimal digits. */
  readonly traceId: string
  /** 16 hexadecimal digits. */
  readonly spanId: string
  readonly isSampled: boolean
}

/** Parses a `traceparent` header; undefined if there is none or it is invalid, which starts a new trace (W3C). */
export function readTraceparent(header: string | undefined): ParentContext | undefined {
  if (header === undefined || header.length > 256) return undefined
  const [, version, traceId = '', spanId = '', flags = ''] = shape.exec(header) ?? []
  if (version === undefined || version === invalidVersion || (version === '00' && header.length !== 55))
    return undefined
  if (/^0+$/.test(traceId) || /^0+$/.test(spanId)) return undefined
  return { traceId, spanId, isSampled: (Number.parseInt(flags, 16) & 1) === 1 }
}

export function writeTraceparent(traceId: string, spanId: string, isSampled: boolean): string {
  return `00-${traceId}-${spanId}-${isSampled ? '01' : '00'}`
}

export const newTraceId = (random: RandomBytes): string => newId(random, traceBytes)
export const newSpanId = (random: RandomBytes): string => newId(random, spanBytes)

/** All zeros is the invalid ID. */
function newId(random: RandomBytes, count: number): string {
  const id = Buffer.from(random(count)).toString('hex')
  return /^0+$/.test(id) ? newId(random, count) : id
}
