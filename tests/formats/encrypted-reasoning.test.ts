import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Json, JsonObject } from '../../src/domain/json.ts'
import {
  holdsEncrypted,
  mayBeEncrypted,
  markWithIssuer,
  markText,
  unmarkIssuer,
  unmarkMember,
} from '../../src/formats/encrypted-reasoning.ts'
import { relayById } from '../../src/formats/formats.ts'
import { elementsOf } from '../../src/formats/json-elements.ts'

const reasoning = relayById('openai-responses').encryptedReasoning!
const thinking = relayById('anthropic-messages').encryptedReasoning!
const json = fc.jsonValue({ maxDepth: 3 })
/** Texts that resemble JSON, marks, and the member name that is searched for. */
const odd = fc.constantFrom(
  '"',
  '\\',
  '\\"',
  '],{',
  '"encrypted_content":"',
  '\\"encrypted_content\\":\\"x',
  'svcr1.mine.',
)
const text = fc.oneof(
  fc.string(),
  odd,
  fc.array(fc.oneof(odd, fc.string()), { maxLength: 4 }).map((list) => list.join('')),
)

describe('the elements of a JSON array', () => {
  test('each element is found with its exact bytes', () => {
    fc.assert(
      fc.property(fc.array(fc.oneof(json, text)), fc.constantFrom(undefined, 1, '\t'), (values, space) => {
        const elements = elementsOf(JSON.stringify(values, undefined, space))
        expect(elements?.map((element) => JSON.parse(element) as Json)).toEqual(JSON.parse(JSON.stringify(values)))
        expect(elementsOf(`[${values.map((value) => JSON.stringify(value)).join(' ,\n')}]`)).toEqual(
          values.map((value) => JSON.stringify(value)),
        )
      }),
    )
  })

  test.each(['"[1]"', '{"a":[1]}', '1', 'null'])('a text that is not an array has none: %s', (value) => {
    expect(elementsOf(value)).toBeUndefined()
  })
})

describe('encrypted reasoning', () => {
  const item = (sealed: string): JsonObject => ({ type: 'reasoning', summary: [], encrypted_content: sealed })

  test('every occurrence in an answer is marked, and nothing else changes', () => {
    fc.assert(
      fc.property(text, text, (said, sealed) => {
        const written = JSON.stringify({ output: [{ text: said }, item(sealed), { deep: [item(sealed)] }] })
        const marked = markText(reasoning, written, JSON.parse(written) as Json, 'mine')
        const own = markWithIssuer('mine', sealed)
        expect(JSON.parse(marked)).toEqual({ output: [{ text: said }, item(own), { deep: [item(own)] }] })
        expect(mayBeEncrypted(reasoning, Buffer.from(written))).toBe(true)
      }),
    )
  })

  test('it is found in a request, however deep, and what resembles it is not', () => {
    const nothing = Buffer.alloc(0)
    const holds = (rules: typeof reasoning, value: Json): boolean => holdsEncrypted(rules, value, nothing)
    const thought = { type: 'thinking', thinking: '', signature: 'EqQB' }
    const hidden = { type: 'redacted_thinking', data: 'EmwK' }
    for (const block of [thought, hidden]) {
      expect(holds(thinking, [{ role: 'user', content: 'Hi' }, { content: [{ content: [block] }] }])).toBe(true)
      // Providers return thoughts without text, which have nothing encrypted.
      expect(holds(thinking, [{ content: [{ ...block, signature: '', data: 1 }] }])).toBe(false)
    }
    fc.assert(
      fc.property(fc.array(json), text, (values, sealed) => {
        expect(holds(reasoning, [...values, { a: [item(sealed)] }] as Json)).toBe(true)
        expect(holds(reasoning, [...values, { encrypted_content: null, text: sealed }] as Json)).toBe(false)
      }),
    )
    expect(holdsEncrypted(reasoning, undefined, nothing)).toBe(false)
    expect(holds(reasoning, '"encrypted_content":"gAAA"')).toBe(false)
  })

  test('it is found after any number of values', () => {
    const many = Array.from({ length: 10_000 }, (_, at) => ({ [`a${at}`]: at }))
    for (const [value, isHeld] of [
      [[...many, item('gAAA')], true],
      [many, false],
    ] as const)
      expect(holdsEncrypted(reasoning, value, Buffer.from(JSON.stringify(value)))).toBe(isHeld)
  })

  test('it returns to its issuer unchanged, with the surrounding bytes unchanged', () => {
    fc.assert(
      fc.property(fc.array(text), text, (said, sealed) => {
        const others = said.map((one) => `{ "text" : ${JSON.stringify(one)},"n":1.50}`)
        const raw = `{"encrypted_content" : ${JSON.stringify(sealed)}, "n":1e400}`
        const marked = markText(reasoning, raw, JSON.parse(raw) as Json, 'mine')
        expect(unmarkMember(reasoning, `[ ${[...others, marked].join(' , ')} ]`, 'mine')).toBe(
          `[${[...others, raw].join(',')}]`,
        )
      }),
    )
  })

  test.each([
    ['a value of another issuer', markWithIssuer('other', 'gAAA')],
    ['a value without a mark', 'gAAA'],
    ['a value with a forged mark', 'svcr1.mine'],
    ['an empty value', ''],
  ])('%s is removed completely, and nothing else', (_, sealed) => {
    const [before, after] = [
      '{"n":1.50,"text":"\\u00fc"}',
      '{"type":"message","content":"ü, \\"encrypted_content\\":\\"x"}',
    ]
    const sent = `[${before},${JSON.stringify(item(sealed))},${after}]`
    expect(unmarkMember(reasoning, sent, 'mine')).toBe(`[${before},${after}]`)
    expect(unmarkIssuer('mine', sealed)).toBeUndefined()
  })

  test('if part of a result came from another issuer, the rest stays and our part is readable', () => {
    const part = (sealed: string): JsonObject => ({ type: 'encrypted_content', encrypted_content: sealed })
    const result = (output: JsonObject[]): JsonObject => ({ type: 'function_call_output', call_id: 'a', output })
    const said = { type: 'input_text', text: 'said' }
    const sent = [result([part(markWithIssuer('mine', 'M')), said, part(markWithIssuer('other', 'O'))])]
    expect(JSON.parse(unmarkMember(reasoning, JSON.stringify(sent), 'mine'))).toEqual([result([part('M'), said])])
  })

  test('null and missing values are ignored', () => {
    const sent = '[{"type":"reasoning","encrypted_content":null},{"type":"reasoning","summary":[]}]'
    expect(unmarkMember(reasoning, sent, 'mine')).toBe(sent)
    expect(unmarkMember(reasoning, '"encrypted_content"', 'mine')).toBe('"encrypted_content"')
  })
})

describe('signed thoughts', () => {
  const signature = 'EqoBCkgIARAB=='
  const thought = (sealed: string): JsonObject => ({ type: 'thinking', thinking: 'Hm.', signature: sealed })
  const redacted = (sealed: string): JsonObject => ({ type: 'redacted_thinking', data: sealed })
  const tool = { type: 'tool_use', id: 'a', name: 'sign', input: { signature, data: 'd', type: 'x' } }
  const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } }
  const own = (sealed: string): string => markWithIssuer('mine', sealed)

  test('thoughts are marked in an answer, but not tool fields with the same names', () => {
    const answer = {
      content: [thought(signature), redacted('Emw='), thought(''), { ...tool, input: { signature: 's' } }],
    }
    const marked = markText(thinking, JSON.stringify(answer), answer, 'mine')
    expect(JSON.parse(marked)).toEqual({
      content: [thought(own(signature)), redacted(own('Emw=')), thought(''), { ...tool, input: { signature: 's' } }],
    })
    const delta = { type: 'content_block_delta', index: 0, delta: { type: 'signature_delta', signature } }
    expect(markText(thinking, JSON.stringify(delta), delta, 'mine')).toContain(`"signature":"${own(signature)}"`)
  })

  test('thoughts return to their issuer, in one piece or several, and others’ are removed', () => {
    const user = { role: 'user', content: [image, { type: 'text', text: 'Look.' }] }
    const said = (...content: JsonObject[]): JsonObject => ({ role: 'assistant', content })
    const sent = [
      user,
      said(thought(own(signature)), redacted(own('Emw=')), tool),
      said(thought(`${own('Eq')}${own('oB')}`), thought(markWithIssuer('other', 'Eq')), thought('Eq'), thought('')),
      said(thought('Eq'), redacted('Emw=')),
      user,
    ]
    expect(JSON.parse(unmarkMember(thinking, JSON.stringify(sent), 'mine'))).toEqual([
      user,
      said(thought(signature), redacted('Emw='), tool),
      said(thought('EqoB'), thought('')),
      user,
    ])
  })
})
