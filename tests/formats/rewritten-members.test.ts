import { describe, expect, test } from 'vitest'
import type { ConversationFormatId } from '../../src/domain/format-id.ts'
import { formatById, relayById } from '../../src/formats/formats.ts'
import { bodyShape, JsonScan } from '../../src/formats/json-scan.ts'
import { relayChanges } from '../../src/formats/relay.ts'
import { foldCase, findMiscasedMember } from '../../src/formats/rewritten-members.ts'
import { clientSides } from '../contract/client-sides.ts'
import { recordedRequests, targetOf } from './exchange.ts'

const formats = Object.keys(clientSides) as ConversationFormatId[]

describe('rewritten members are recognized in every spelling (contract 2.26)', () => {
  test.each(formats)('every member that the relay changes in a recorded request of %s is in the list', (format) => {
    let seen = 0
    const { path: own } = formatById(format)
    for (const { path, body } of recordedRequests()) {
      if (body === undefined || !path.split('?', 1)[0]!.endsWith(own)) continue
      const conversation = formatById(format).readRequest(body)
      const changes = relayChanges(relayById(format), body, conversation, targetOf(conversation))
      for (const name of [...Object.keys(changes), 'model', 'stream', 'previous_response_id', 'tools']) {
        const shouted = name.toUpperCase()
        expect(findMiscasedMember([member(shouted)]), name).toBe(shouted)
        expect(findMiscasedMember([member(name)]), name).toBeUndefined()
        seen += 1
      }
    }
    expect(seen).toBeGreaterThan(0)
  })

  test('letters that Unicode folds to others are recognized', () => {
    expect(foldCase('ſtream')).toBe('stream')
    expect(foldCase('to\u212Aens')).toBe('tokens')
    expect(findMiscasedMember([member('meſſages')])).toBe('meſſages')
  })

  test('escapes in a name are decoded', () => {
    const bytes = Buffer.from(String.raw`{"\u004dodel":1}`)
    const scan = new JsonScan(bodyShape)
    scan.push(bytes)
    expect(findMiscasedMember(scan.members(bytes))).toBe('Model')
  })
})

function member(key: string) {
  return { key, keyStart: 0, valueStart: 0, valueEnd: 0 }
}
