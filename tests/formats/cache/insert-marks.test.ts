import { describe, expect, test } from 'vitest'
import { insertionsOf, type MarkInsertion } from '../../../src/formats/cache/insert-marks.ts'
import { bodyShape, JsonScan, memberText, patchMembers } from '../../../src/formats/json-scan.ts'

const mark = '"cache_control":{"type":"ephemeral"}'

function inserted(
  json: string,
  places: readonly Omit<MarkInsertion, 'mark' | 'textType'>[],
  changes: Readonly<Record<string, string>> = {},
) {
  const bytes = Buffer.from(json)
  const scan = new JsonScan(bodyShape)
  scan.push(bytes)
  const marks = places.map((place) => ({ ...place, mark: `,${mark}`, textType: 'text' }))
  const members = scan.members(bytes)
  const insertions = insertionsOf(bytes, members, marks)
  return { bytes: patchMembers(bytes, members, changes, insertions), members, insertions }
}

describe('marks in a relayed body', () => {
  test('only the mark is new, and every other byte stays', () => {
    const json =
      '{"system" : [ {"type":"text","text":"a\\"}"} ] ,\n "messages":[{"content":[{"type":"text","text":"ü"} , {"type":"text","text":"é"}],"role":"user"}], "x": 1}'
    const { bytes } = inserted(json, [
      { member: 'system', fromEnd: 0 },
      { member: 'messages', fromEnd: 0, partFromEnd: 0 },
    ])
    const expected = json.replace('"a\\"}"}', `"a\\"}",${mark}}`).replace('"é"}', `"é",${mark}}`)
    expect(bytes.toString()).toBe(expected)
  })

  test('several parts of one message, counted from the end, past strings that look like JSON', () => {
    const texts = ['a', '}]', 'x"},{"', '']
    const parts = texts.map((text) => ({ type: 'text', text }))
    const json = JSON.stringify({
      messages: [
        { content: parts, role: 'user' },
        { role: 'assistant', content: 'Yes' },
      ],
    })
    const marked = [2, 1].map((partFromEnd) => ({ member: 'messages', fromEnd: 1, partFromEnd }))
    const { messages } = JSON.parse(inserted(json, marked).bytes.toString()) as { messages: [{ content: object[] }] }
    const withMark = { cache_control: { type: 'ephemeral' } }
    expect(messages[0].content).toEqual(
      parts.map((part, at) => (at === 1 || at === 2 ? { ...part, ...withMark } : part)),
    )
  })

  test('a text becomes a block of the same text', () => {
    const { bytes } = inserted('{"system":"Be brief.","messages":[{"role":"user","content":"A \\\\"}]}', [
      { member: 'system', fromEnd: 0 },
      { member: 'messages', fromEnd: 0, partFromEnd: -1 },
    ])
    expect(bytes.toString()).toBe(
      `{"system":[{"type":"text","text":"Be brief.",${mark}}],"messages":[{"role":"user","content":[{"type":"text","text":"A \\\\",${mark}}]}]}`,
    )
  })

  test('together with changes of other members', () => {
    const json = '{"a":1,"messages":[{"role":"user","content":"Hi"}],"model":"m","z":[]}'
    const places = [{ member: 'messages', fromEnd: 0, partFromEnd: -1 }]
    const content = [{ type: 'text', text: 'Hi', cache_control: { type: 'ephemeral' } }]
    const { bytes, members, insertions } = inserted(json, places, { model: '"other"' })
    expect(JSON.parse(bytes.toString())).toEqual({ a: 1, messages: [{ role: 'user', content }], model: 'other', z: [] })
    // A member that is replaced gets its marks with its new text.
    const text = memberText(Buffer.from(json), members[1]!, insertions)
    expect(JSON.parse(text)).toEqual([{ role: 'user', content }])
    const replaced = inserted(json, places, { messages: text, a: '2' }).bytes.toString()
    expect(JSON.parse(replaced)).toEqual({ a: 2, messages: [{ role: 'user', content }], model: 'm', z: [] })
  })

  test('the last of two members with the same name is marked, as parsers read it', () => {
    const { bytes } = inserted('{"messages":[{"content":"old","role":"user","content":"new"}]}', [
      { member: 'messages', fromEnd: 0, partFromEnd: -1 },
    ])
    expect(bytes.toString()).toContain(`"content":"old","role":"user","content":[{"type":"text","text":"new",${mark}}]`)
  })

  test('entries are counted from the end, past strings that look like JSON', () => {
    const texts = ['a', '\\\\', 'x"]}],[{"', '{"role":"user"}', ']'.repeat(400), `${'\\"'.repeat(300)}\\`, '']
    const entries = texts.map((content, at) => ({ role: 'user', content, number: at % 2 === 0 ? -1.5e3 : null }))
    for (const space of [undefined, 2]) {
      const json = JSON.stringify({ messages: entries, model: 'm' }, null, space)
      for (const index of texts.keys()) {
        const fromEnd = texts.length - 1 - index
        const { bytes } = inserted(json, [{ member: 'messages', fromEnd, partFromEnd: -1 }])
        const marked = { type: 'text', text: texts[index], cache_control: { type: 'ephemeral' } }
        const expected = entries.map((entry, at) => (at === index ? { ...entry, content: [marked] } : entry))
        expect(JSON.parse(bytes.toString())).toEqual({ messages: expected, model: 'm' })
      }
    }
  })

  test('a block that cannot be found is left out', () => {
    const json = '{"messages":[{"role":"user","c\\u006fntent":"Hi"}]}'
    expect(inserted(json, [{ member: 'messages', fromEnd: 0, partFromEnd: -1 }]).bytes.toString()).toBe(json)
    expect(inserted(json, [{ member: 'messages', fromEnd: 7, partFromEnd: 0 }]).bytes.toString()).toBe(json)
  })
})
