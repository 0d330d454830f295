import { array, assert, boolean, integer, property, record, uint8Array } from 'fast-check'
import { describe, expect, test } from 'vitest'
import { AnswerParser, HttpViolation } from '../../../src/providers/http/answer-parser.ts'

interface Result {
  heads: { status: number; headers: Record<string, unknown> }[]
  body: Buffer
  pieces: number
  ends: number
  parser: AnswerParser
}

/** Parses these pieces as the answer to one request. @throws HttpViolation */
function read(pieces: readonly (string | Uint8Array)[], closes = false): Result {
  const result: Omit<Result, 'parser'> = { heads: [], body: Buffer.alloc(0), pieces: 0, ends: 0 }
  const parser = new AnswerParser({
    onAnswerHead: (status, headers) => void result.heads.push({ status, headers: { ...headers } }),
    onAnswerData(chunk) {
      result.body = Buffer.concat([result.body, chunk])
      result.pieces += 1
    },
    onAnswerEnd: () => void (result.ends += 1),
  })
  parser.expect()
  for (const piece of pieces) parser.push(Buffer.from(piece as string, 'latin1'))
  if (closes) parser.close()
  return Object.assign(result, { parser })
}

const chunkedHead = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n'

describe('an answer', () => {
  test('an answer with a length ends with its last byte, and the connection is reusable', () => {
    const { heads, body, ends, parser } = read([
      'HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-A: ignored\r\nCF-Ray:  b \r\n\r\nhello',
    ])
    expect([heads, body.toString(), ends]).toEqual([
      [{ status: 200, headers: { 'content-length': '5', 'cf-ray': 'b' } }],
      'hello',
      1,
    ])
    expect([parser.isDone, parser.keepAlive]).toEqual([true, true])
  })

  test('a limited number and size of interim answers may precede it', () => {
    const interim = 'HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n'
    const answer = 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello'
    expect(read([interim.repeat(20), answer]).ends).toBe(1)
    expect(read(Array.from(interim.repeat(3) + answer)).ends).toBe(1)
    expect(() => read([interim.repeat(65)])).toThrow(HttpViolation)
    expect(() => read(Array.from({ length: 65 }, () => interim))).toThrow(HttpViolation)
    const long = `HTTP/1.1 103 Early Hints\r\nlink: ${'x'.repeat(15_000)}\r\n\r\n`
    expect(() => read(Array.from({ length: 5 }, () => long))).toThrow(HttpViolation)
  })

  test('chunk sizes may be padded, but the total size of extensions is limited', () => {
    const end = '0\r\n\r\n'
    expect(read([chunkedHead, '1       \r\nx\r\n'.repeat(20_000), end]).body).toHaveLength(20_000)
    expect(() => read([chunkedHead, `1;${'e'.repeat(900)}\r\nx\r\n`.repeat(20), end])).toThrow(HttpViolation)
  })

  test('chunks are delivered without their framing, all chunks of one read in one piece', () => {
    const { body, pieces, ends, parser } = read([
      `${chunkedHead}5\r\nhello\r\n1;ext="x"\r\n \r\n00006 \r\nworld!\r\n0\r\nX-Trailer: 1\r\n\r\n`,
    ])
    expect([body.toString(), pieces, ends, parser.keepAlive]).toEqual(['hello world!', 1, 1, true])
  })

  test('an answer without a length or chunks ends only when the peer closes', () => {
    const open = read(['HTTP/1.1 200 OK\r\n\r\nhel', 'lo'])
    expect([open.body.toString(), open.ends]).toEqual(['hello', 0])
    const closed = read(['HTTP/1.1 200 OK\r\n\r\nhello'], true)
    expect([closed.ends, closed.parser.keepAlive]).toEqual([1, false])
  })

  test('an answer that the peer truncates has no end', () => {
    expect(read(['HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell'], true).ends).toBe(0)
    expect(read([`${chunkedHead}5\r\nhello\r\n`], true).ends).toBe(0)
    expect(read([`${chunkedHead}5\r\nhello\r\n0\r\n`], true).ends).toBe(0)
    expect(read(['HTTP/1.1 200 OK\r\nContent'], true).ends).toBe(0)
  })

  test('an answer without a body ends with its head', () => {
    for (const head of ['204 No Content', '304 Not Modified', '200 OK\r\nContent-Length: 0']) {
      expect(read([`HTTP/1.1 ${head}\r\n\r\n`]).ends).toBe(1)
    }
  })

  test('several different interim answers may precede it', () => {
    const { heads, body } = read([
      'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200\r\ncontent-length: 2\r\n\r\nok',
    ])
    expect([heads.map(({ status }) => status), body.toString()]).toEqual([[200], 'ok'])
  })

  test('it reports whether the connection stays open, and for how long', () => {
    const with_ = (fields: string, version = '1.1') =>
      read([`HTTP/${version} 200 OK\r\nContent-Length: 0\r\n${fields}\r\n`]).parser
    expect(with_('Connection: close\r\n').keepAlive).toBe(false)
    expect(with_('', '1.0').keepAlive).toBe(false)
    expect(with_('Connection: Keep-Alive\r\nKeep-Alive: timeout=5, max=100\r\n')).toMatchObject({
      keepAlive: true,
      peerKeepAliveMs: 5_000,
    })
  })

  test('with extra bytes after it, the answer is complete but its connection is not reused', () => {
    const { body, ends, parser } = read(['HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\n\r\n'])
    expect([body.toString(), ends, parser.keepAlive]).toEqual(['ok', 1, false])
  })
})

test('every split of an answer into reads gives the same result', () => {
  const answers = record({
    chunks: array(uint8Array({ minLength: 1, maxLength: 40 }), { maxLength: 8 }),
    isChunked: boolean(),
    cuts: array(integer({ min: 0, max: 600 }), { maxLength: 12 }),
  })
  assert(
    property(answers, ({ chunks, isChunked, cuts }) => {
      const body = Buffer.concat(chunks)
      const framed = chunks.flatMap((chunk) => [
        Buffer.from(`${chunk.length.toString(16)}\r\n`),
        chunk,
        Buffer.from('\r\n'),
      ])
      const bytes = isChunked
        ? Buffer.concat([Buffer.from(chunkedHead), ...framed, Buffer.from('0\r\n\r\n')])
        : Buffer.concat([Buffer.from(`HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n`), body])
      const places = [0, ...cuts.filter((cut) => cut < bytes.length).toSorted((a, b) => a - b), bytes.length]
      const pieces = places.slice(1).map((place, index) => Uint8Array.from(bytes.subarray(places[index], place)))
      const result = read(pieces)
      expect(result.body.equals(body)).toBe(true)
      expect([result.heads.length, result.ends, result.parser.isDone]).toEqual([1, 1, true])
    }),
    { numRuns: 500 },
  )
})

test.each([
  ['something other than HTTP', 'SSH-2.0-OpenSSH\r\n'],
  ['another version', 'HTTP/2 200\r\n\r\n'],
  ['a status of two digits', 'HTTP/1.1 20 OK\r\n\r\n'],
  ['another protocol', 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n'],
  ['a length and chunks', 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n'],
  ['two lengths', 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n'],
  ['a list of lengths', 'HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\n\r\n'],
  ['a negative length', 'HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n'],
  ['a length with a sign', 'HTTP/1.1 200 OK\r\nContent-Length: +1\r\n\r\n'],
  ['a coding besides chunked', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n'],
  ['chunked twice', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n'],
  ['a space before the colon', 'HTTP/1.1 200 OK\r\nContent-Length : 5\r\n\r\n'],
  ['a folded line', 'HTTP/1.1 200 OK\r\nX-A: b\r\n c\r\n\r\n'],
  ['a line without a colon', 'HTTP/1.1 200 OK\r\nnothing\r\n\r\n'],
  ['a bare line feed in a field', 'HTTP/1.1 200 OK\r\nX-A: b\nContent-Length: 5\r\n\r\n'],
  ['a bare line feed at the end of a field', 'HTTP/1.1 200 OK\r\nX-A: b\n\r\n\r\n'],
  ['a zero byte in a field', 'HTTP/1.1 200 OK\r\nX-A: b\0\r\n\r\n'],
  ['a chunk without a size', `${chunkedHead}\r\n`],
  ['a size that is not a number', `${chunkedHead}zz\r\n`],
  ['a size with a prefix', `${chunkedHead}0x5\r\nhello\r\n`],
  ['a size that exceeds every limit', `${chunkedHead}fffffffff\r\n`],
  ['a chunk larger than the limit on answers', `${chunkedHead}ffffffff\r\n${'x'.repeat(70 * 1024 * 1024)}`],
  ['a chunk longer than its size', `${chunkedHead}5\r\nhello!\r\n`],
  ['a bare line feed after a size', `${chunkedHead}5\nhello\r\n`],
  ['a size line without an end', `${chunkedHead}5;${'x'.repeat(2_000)}`],
  ['a head without an end', `HTTP/1.1 200 OK\r\nX-A: ${'x'.repeat(20_000)}`],
  ['trailers without an end', `${chunkedHead}0\r\n${'X-A: 0123456789\r\n'.repeat(2_000)}`],
])('%s is rejected, even one byte at a time', (_, bytes) => {
  expect(() => read([bytes])).toThrow(HttpViolation)
  if (bytes.length < 3_000) expect(() => read(bytes.split(''))).toThrow(HttpViolation)
})

test('data before the violation is delivered', () => {
  let seen = ''
  const parser = new AnswerParser({
    onAnswerHead() {},
    onAnswerData: (chunk) => void (seen += chunk.toString()),
    onAnswerEnd: () => expect.unreachable(),
  })
  parser.expect()
  expect(() => parser.push(Buffer.from(`${chunkedHead}5\r\nhello\r\nzz\r\n`))).toThrow(HttpViolation)
  expect(seen).toBe('hello')
})
