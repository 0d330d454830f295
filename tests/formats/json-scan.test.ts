import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { ServiceError } from '../../src/domain/errors.ts'
import { duplicateKey, JsonScan, patchMembers, type JsonMember } from '../../src/formats/json-scan.ts'

const wide = { maxDepth: 1_000, maxTokens: 1_000_000, maxMembers: 1_000_000 }

const space = fc.constantFrom('', '', '', ' ', '\n', '\t\r\n  ')

/** A string as JSON, with some of its letters and digits escaped although they need not be. */
const escaped = (plain: string): fc.Arbitrary<string> =>
  fc.infiniteStream(fc.boolean()).map((choices) => {
    const json = JSON.stringify(plain)
    // What follows a backslash is part of its escape and must stay.
    if (json.includes('\\')) return json
    return json.replace(/[a-z0-9]/gi, (character) => {
      return choices.next().value === true ? `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}` : character
    })
  })

/** A string in all lengths: short ones and those that are skipped natively. */
const text = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 20 }),
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
    fc.dictionary(fc.string({ unit: 'binary', maxLength: 5 }), tie('json'), { maxKeys: 4 }),
  ),
})).json

interface Written {
  readonly json: string
  readonly pairs: readonly (readonly [key: string, value: unknown])[]
}

/** An object of JSON in any spelling, and what stands in it. */
const written: fc.Arbitrary<Written> = fc
  .uniqueArray(
    fc.tuple(
      fc.oneof(
        fc.constantFrom('model', 'stream', 'input', '__proto__', '1', ''),
        fc.string({ unit: 'binary', maxLength: 8 }),
      ),
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

/** The members of the outermost object, found in pieces that are cut at those places. */
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
  test('are found with their keys and values, wherever the bytes are cut', () => {
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

  test('are the same byte by byte', () => {
    fc.assert(
      fc.property(written, ({ json }) => {
        const bytes = Buffer.from(json)
        expect(scan(bytes, [...bytes.keys()])).toEqual(scan(bytes))
      }),
      { numRuns: 200 },
    )
  })

  test('a key that is spelled with escapes is the key that it spells', () => {
    const bytes = Buffer.from(String.raw`{"mod\u0065l":1,"a\"b":2,"\\":3,"\ud83d\ude00":4}`)
    expect(scan(bytes).map(({ key }) => key)).toEqual(['model', 'a"b', '\\', '😀'])
  })

  test('no bytes at all make it fail otherwise than with a refusal', () => {
    const piece = fc.constantFrom('{', '}', '[', ']', '"', '\\', ',', ':', 'a', '\u0000', 'é')
    fc.assert(
      fc.property(fc.array(fc.oneof(piece, fc.string({ unit: 'binary' }))), fc.array(fc.nat()), (pieces, cuts) => {
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

describe('a field that is given twice is found', () => {
  test.each([
    ['spelled the same', '{"model":1,"x":2,"model":3}', 'model'],
    ['spelled with an escape', String.raw`{"model":1,"mod\u0065l":3}`, 'model'],
    ['far inside it may be', '{"a":{"x":1,"x":2},"b":[{"x":1}]}', undefined],
    ['names that only resemble each other', '{"model":1,"Model":2,"model ":3}', undefined],
  ])('%s', (_name, json, twice) => {
    const bytes = Buffer.from(json)
    expect(duplicateKey(scan(bytes))).toBe(twice)
  })
})

describe('replacing members', () => {
  test('changes what the change says and not a byte of anything else', () => {
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

  test('leaves one where a field stood twice', () => {
    const bytes = Buffer.from('{"model":1,"a":2,"model":3}')
    expect(patchMembers(bytes, scan(bytes), { model: '"m"' }).toString()).toBe('{"model":"m","a":2}')
  })

  test('adds to an empty object and empties a full one', () => {
    const empty = Buffer.from(' { } ')
    expect(patchMembers(empty, scan(empty), { model: '1', stream: undefined }).toString()).toBe('{"model":1}')
    const full = Buffer.from('{"model":1}')
    expect(patchMembers(full, scan(full), { model: undefined }).toString()).toBe('{}')
  })
})

describe('bounds', () => {
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
  ] as const)('%s: the largest passes, one more is refused, however it is cut', (_name, make, most, given) => {
    const cuts = [1, 7, 50, 99, 1_000, 5_000]
    for (const where of [[], cuts]) {
      const largest = Buffer.from(make(most))
      expect(() => scan(largest, where, given)).not.toThrow()
      JSON.parse(largest.toString())
      expect(() => scan(Buffer.from(make(most + 1)), where, given)).toThrow(ServiceError)
    }
  })

  test('objects one behind the other are counted each by itself', () => {
    const object = `{${named(6_000)}}`
    const bytes = Buffer.from(`{"a":[${object},${object}],"b":${object}}`)
    expect(scan(bytes, [70_000], wide)).toHaveLength(2)
  })

  test('what stands in strings counts for nothing', () => {
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
