import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { ServiceError } from '../../src/domain/errors.ts'
import { duplicateKey, JsonScan, patchMembers, type JsonMember } from '../../src/formats/json-scan.ts'
import { anyText } from '../any-text.ts'

const wide = { maxDepth: 1_000, maxTokens: 1_000_000, maxMembers: 1_000_000 }

const space = fc.constantFrom('', '', '', ' ', '\n', '\t\r\n  ')

/** A string as JSON, with some of its letters and digits escaped unnecessarily. */
const escaped = (plain: string): fc.Arbitrary<string> =>
  fc.infiniteStream(fc.boolean()).map((choices) => {
    const json = JSON.stringify(plain)
    // What follows a backslash is part of its escape and must stay.
    if (json.includes('\\')) return json
    return json.replace(/[a-z0-9]/gi, (character) => {
      return choices.next().value === true ? `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}` : character
    })
  })

/** Strings of all lengths, including those that the scanner skips natively. */
const text = fc.oneof(
  anyText({ maxLength: 20 }),
  fc.constantFrom('\\', '"', '\\"', '"\\', '{', '}', '[,:]', 'é漢😀', '\\\\"'),
  fc
    .tuple(fc.constantFrom('x', '\\', '"', '\\"', 'é', '},{'), fc.integer({ min: 60, max: 300 }))
    .map(([unit, times]) => unit.repeat(times)),
)

const value = fc.letrec<{ json: unknown }>((tie) => ({
  json: fc.oneof(
    { maxDepth: 4 },
    fc.constantFrom(null, true, false, 0, -1.5e-7, 1e21),
    text,
    fc.array(tie('json'), { maxLength: 4 }),
    fc.dictionary(anyText({ maxLength: 5 }), tie('json'), { maxKeys: 4 }),
  ),
})).json

interface Written {
  readonly json: string
  readonly pairs: readonly (readonly [key: string, value: unknown])[]
}

/** A JSON object in any spelling, and its content. */
const written: fc.Arbitrary<Written> = fc
  .uniqueArray(
    fc.tuple(
      fc.oneof(fc.constantFrom('model', 'stream', 'input', '__proto__', '1', ''), anyText({ maxLength: 8 })),
      value,
    ),
    {
      selector: ([key]) => key,
      maxLength: 6,
    },
  )
  .chain((pairs) =>
    fc
      .tuple(
        space,
        ...pairs.map(([key, held]) => fc.tuple(escaped(key), space, space, space, space, fc.constant(held))),
      )
      .map(([lead, ...members]) => {
        const texts = members.map(([key, a, b, c, d, held]) => `${a}${key}${b}:${c}${JSON.stringify(held)}${d}`)
        return { json: `${lead}{${texts.join(',')}}${lead}`, pairs }
      }),
  )

/** The members of the outermost object, scanned in pieces that are split at those offsets. */
function scan(bytes: Buffer, cuts: readonly number[] = [], limits = wide): readonly JsonMember[] {
  const found = new JsonScan(limits)
  const places = [...new Set(cuts.map((cut) => cut % (bytes.length + 1)))].sort((a, b) => a - b)
  let from = 0
  for (const place of [...places, bytes.length]) {
    found.push(bytes.subarray(from, place))
    from = place
  }
  return found.members(bytes)
}

describe('the members of the outermost object', () => {
  test('keys and values are found however the bytes are split', () => {
    fc.assert(
      fc.property(written, fc.array(fc.nat(), { maxLength: 12 }), ({ json, pairs }, cuts) => {
        const bytes = Buffer.from(json)
        const members = scan(bytes, cuts)
        expect(members.map(({ key }) => key)).toEqual(pairs.map(([key]) => Buffer.from(key).toString()))
        members.forEach((member, index) => {
          const { valueStart, valueEnd, keyStart } = member
          expect(JSON.parse(bytes.subarray(valueStart, valueEnd).toString())).toEqual(
            JSON.parse(JSON.stringify(pairs[index]![1])),
          )
          expect(bytes[keyStart]).toBe('"'.charCodeAt(0))
        })
        expect(members).toEqual(scan(bytes))
      }),
      { numRuns: 300 },
    )
  })

  test('bytes that arrive one at a time give the same members', () => {
    fc.assert(
      fc.property(written, ({ json }) => {
        const bytes = Buffer.from(json)
        expect(scan(bytes, [...bytes.keys()])).toEqual(scan(bytes))
      }),
      { numRuns: 200 },
    )
  })

  test('escapes in a key are decoded', () => {
    const bytes = Buffer.from(String.raw`{"mod\u0065l":1,"a\"b":2,"\\":3,"\ud83d\ude00":4}`)
    expect(scan(bytes).map(({ key }) => key)).toEqual(['model', 'a"b', '\\', '😀'])
  })

  test('arbitrary bytes cause only service errors', () => {
    const piece = fc.constantFrom('{', '}', '[', ']', '"', '\\', ',', ':', 'a', '\u0000', 'é')
    fc.assert(
      fc.property(fc.array(fc.oneof(piece, anyText())), fc.array(fc.nat()), (pieces, cuts) => {
        try {
          const bytes = Buffer.from(pieces.join(''))
          scan(bytes, cuts, { maxDepth: 5, maxTokens: 50, maxMembers: 20 })
        } catch (error) {
          expect(error).toBeInstanceOf(ServiceError)
        }
      }),
      { numRuns: 500 },
    )
  })
})

describe('a duplicate field', () => {
  test.each([
    ['is found if both names are spelled the same', '{"model":1,"x":2,"model":3}', 'model'],
    ['is found if one name has an escape', String.raw`{"model":1,"mod\u0065l":3}`, 'model'],
    ['is allowed inside other objects', '{"a":{"x":1,"x":2},"b":[{"x":1}]}', undefined],
    ['must be equal, not just similar', '{"model":1,"Model":2,"model ":3}', undefined],
  ])('%s', (_name, json, twice) => {
    const bytes = Buffer.from(json)
    expect(duplicateKey(scan(bytes))).toBe(twice)
  })
})

describe('replacing members', () => {
  test('only the given members change, and every other byte stays', () => {
    const changes = fc.dictionary(
      fc.constantFrom('model', 'stream', 'stream_options', 'input', '__proto__', '1'),
      fc.option(value, { nil: undefined }),
    )
    fc.assert(
      fc.property(written, changes, ({ json, pairs }, wanted) => {
        const bytes = Buffer.from(json)
        const members = scan(bytes)
        const texts = Object.fromEntries(
          Object.entries(wanted).map(([key, held]) => [key, held === undefined ? undefined : JSON.stringify(held)]),
        )
        const patched = patchMembers(bytes, members, texts)
        const expected = new Map(pairs)
        for (const [key, held] of Object.entries(wanted)) {
          if (held === undefined) expected.delete(key)
          else expected.set(key, held)
        }
        const found = new Map(scan(patched).map((member) => [member.key, valueOf(patched, member)]))
        expect([...found.keys()].sort()).toEqual([...expected.keys()].map((key) => Buffer.from(key).toString()).sort())
        for (const [key, held] of expected)
          expect(JSON.parse(found.get(key)!)).toEqual(JSON.parse(JSON.stringify(held)))
        JSON.parse(patched.toString())
        for (const member of members) {
          if (Object.hasOwn(wanted, member.key)) continue
          expect(patched.includes(bytes.subarray(member.keyStart, member.valueEnd))).toBe(true)
        }
      }),
      { numRuns: 300 },
    )
  })

  test('a large result fills its memory exactly, so that it can be freed', () => {
    const text = 'ü'.repeat(100_000)
    const bytes = Buffer.from(JSON.stringify({ model: 'm', messages: [text], stream: true }))
    const changes = { model: '"longer"', stream: undefined, added: '"ü"' }
    const patched = patchMembers(bytes, scan(bytes), changes, [{ at: bytes.indexOf(']'), text: ',1' }])
    expect(JSON.parse(patched.toString())).toEqual({ model: 'longer', messages: [text, 1], added: 'ü' })
    expect(patched.byteLength).toBe(patched.buffer.byteLength)
  })

  test('a duplicate field is left once', () => {
    const bytes = Buffer.from('{"model":1,"a":2,"model":3}')
    expect(patchMembers(bytes, scan(bytes), { model: '"m"' }).toString()).toBe('{"model":"m","a":2}')
  })

  test('members can be added to an empty object, and the only member can be removed', () => {
    const empty = Buffer.from(' { } ')
    expect(patchMembers(empty, scan(empty), { model: '1', stream: undefined }).toString()).toBe('{"model":1}')
    const full = Buffer.from('{"model":1}')
    expect(patchMembers(full, scan(full), { model: undefined }).toString()).toBe('{}')
  })
})

describe('limits', () => {
  const limits = { maxDepth: 20, maxTokens: 100, maxMembers: 30 }
  const nested = (depth: number): string => `{"a":${'['.repeat(depth - 1)}${']'.repeat(depth - 1)}}`
  const listed = (tokens: number): string => `{"a":[${Array.from({ length: tokens - 2 }, () => '1').join(',')}]}`
  const inner = (members: number): string => `{"a":{${named(members - 1)}}}`

  test.each([
    ['depth', nested, 20, limits],
    ['tokens', listed, 100, limits],
    ['members of all objects together', inner, 30, limits],
    ['members of the outermost object', (count: number) => `{${named(count)}}`, 1_000, wide],
    ['members of one object within', (count: number) => `{"a":{${named(count)}}}`, 10_000, wide],
    ['bytes of a name', (count: number) => `{"${'k'.repeat(count)}":1}`, 256, wide],
  ] as const)(
    '%s: the maximum is accepted and one more is rejected, however the bytes are split',
    (_name, make, most, given) => {
      const cuts = [1, 7, 50, 99, 1_000, 5_000]
      for (const where of [[], cuts]) {
        const largest = Buffer.from(make(most))
        expect(() => scan(largest, where, given)).not.toThrow()
        JSON.parse(largest.toString())
        expect(() => scan(Buffer.from(make(most + 1)), where, given)).toThrow(ServiceError)
      }
    },
  )

  test('objects that follow one another are counted separately', () => {
    const object = `{${named(6_000)}}`
    const bytes = Buffer.from(`{"a":[${object},${object}],"b":${object}}`)
    expect(scan(bytes, [70_000], wide)).toHaveLength(2)
  })

  test('the contents of strings are not counted', () => {
    const bytes = Buffer.from(JSON.stringify({ a: '[{,:}]\\"'.repeat(10_000) }))
    expect(scan(bytes, [3, 5_000, 5_001, 70_000], limits)).toHaveLength(1)
  })
})

function named(count: number): string {
  return Array.from({ length: count }, (_, index) => `"k${index}":1`).join(',')
}

function valueOf(bytes: Buffer, { valueStart, valueEnd }: JsonMember): string {
  return bytes.subarray(valueStart, valueEnd).toString()
}
