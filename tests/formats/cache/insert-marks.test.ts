import { describe, expect, test } from 'vitest'
import { insertMarks, type MarkInsertion } from '../../../src/formats/cache/insert-marks.ts'
import { bodyShape, JsonScan, patchMembers } from '../../../src/formats/json-scan.ts'

const mark = '"cache_control":{"type":"ephemeral"}'

function inserted(json: string, places: readonly Omit<MarkInsertion, 'mark' | 'textType'>[]) {
  const bytes = Buffer.from(json)
  const scan = new JsonScan(bodyShape)
  scan.push(bytes)
  const marks = places.map((place) => ({ ...place, mark, textType: 'text' }))
  return insertMarks(bytes, scan.members(bytes), marks)
}

describe('marks in a relayed body', () => {
  test('only the mark is new, and every other byte stays', () => {
    const json =
      '{ "system" : [ {"type":"text","text":"a\\"}"} ] ,\n "messages":[{"content":[{"type":"text","text":"ü"} , {"type":"text","text":"é"}],"role":"user"}], "x": 1}'
    const { bytes } = inserted(json, [
      { member: 'system', fromEnd: 0 },
      { member: 'messages', fromEnd: 0, part: 1 },
    ])
    const expected = json.replace('"a\\"}"}', `"a\\"}",${mark}}`).replace('"é"}', `"é",${mark}}`)
    expect(bytes.toString()).toBe(expected)
  })

  test('a text becomes a block of the same text', () => {
    const { bytes } = inserted('{"system":"Be brief.","messages":[{"role":"user","content":"A \\\\"}]}', [
      { member: 'system', fromEnd: 0 },
      { member: 'messages', fromEnd: 0, part: -1 },
    ])
    expect(bytes.toString()).toBe(
      `{"system":[{"type":"text","text":"Be brief.",${mark}}],"messages":[{"role":"user","content":[{"type":"text","text":"A \\\\",${mark}}]}]}`,
    )
  })

  test('members are still found where they are now', () => {
    const json = '{"a":1,"messages":[{"role":"user","content":"Hi"}],"model":"m","z":[]}'
    const { bytes, members } = inserted(json, [{ member: 'messages', fromEnd: 0, part: -1 }])
    const patched = patchMembers(bytes, members, { model: '"other"' }).toString()
    expect(JSON.parse(patched)).toEqual({
      a: 1,
      messages: [{ role: 'user', content: [{ type: 'text', text: 'Hi', cache_control: { type: 'ephemeral' } }] }],
      model: 'other',
      z: [],
    })
  })

  test('the last of two members with the same name is marked, as parsers read it', () => {
    const { bytes } = inserted('{"messages":[{"content":"old","role":"user","content":"new"}]}', [
      { member: 'messages', fromEnd: 0, part: -1 },
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
        const { bytes } = inserted(json, [{ member: 'messages', fromEnd, part: -1 }])
        const marked = { type: 'text', text: texts[index], cache_control: { type: 'ephemeral' } }
        const expected = entries.map((entry, at) => (at === index ? { ...entry, content: [marked] } : entry))
        expect(JSON.parse(bytes.toString())).toEqual({ messages: expected, model: 'm' })
      }
    }
  })

  test('a block that cannot be found is left out', () => {
    const json = '{"messages":[{"role":"user","c\\u006fntent":"Hi"}]}'
    expect(inserted(json, [{ member: 'messages', fromEnd: 0, part: -1 }]).bytes.toString()).toBe(json)
    expect(inserted(json, [{ member: 'messages', fromEnd: 7, part: 0 }]).bytes.toString()).toBe(json)
  })
})
