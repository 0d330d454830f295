import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { ConversationFormatId } from '../../src/domain/format-id.ts'
import type { JsonObject } from '../../src/domain/json.ts'
import { formatById, relayById } from '../../src/formats/formats.ts'
import { bodyShape, JsonScan } from '../../src/formats/json-scan.ts'
import { relayChanges } from '../../src/formats/relay.ts'
import { foldCase, findMiscasedMember } from '../../src/formats/rewritten-members.ts'
import { readRoutingPreferences } from '../../src/gateway/routing/read-preferences.ts'
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

  test('every member that any code reads from a request is in the list', () => {
    const names = new Set([...namesInSources(), ...namesReadAtRuntime()])
    // A few that each way of finding them must find.
    for (const name of ['session_id', 'prompt_cache_key', 'routing', 'mcp_servers', 'top_p'])
      expect(names).toContain(name)
    const missing = [...names].filter((name) => findMiscasedMember([member(name.toUpperCase())]) === undefined)
    expect(missing).toEqual([])
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

/** These read answers, or write requests in a format. */
const notRequests = /write-|read-answer|error-body|usage|judge|provider-error|answer-compaction/
/** Members of an answer, in a file that reads both. */
const ofAnswers = new Set(['data', 'usage'])

/** The members that source files name when they read a body: `body['x']`, `stringField(body, 'x')`, `const { x } = body`. */
function namesInSources(): readonly string[] {
  const names = new Set<string>()
  const root = join(import.meta.dirname, '..', '..', 'src')
  for (const folder of ['formats', 'gateway', 'http']) {
    for (const file of globSync('**/*.ts', { cwd: join(root, folder) })) {
      if (notRequests.test(file)) continue
      const text = readFileSync(join(root, folder, file), 'utf8')
      for (const [, name] of text.matchAll(/\b(?:body|given)\)?\??\.?\['(\w+)'\]/g)) names.add(name!)
      for (const [, name] of text.matchAll(/\b\w+\((?:\w+\.)*body, '(\w+)'/g)) names.add(name!)
      for (const [, members] of text.matchAll(/\{([^{}]*)\}(?:: JsonObject)? = (?:\w+\.)*body\n/g)) {
        for (const name of members!.split(',')) {
          const own = /^\s*(\w+)/.exec(name)?.[1]
          if (own !== undefined) names.add(own)
        }
      }
    }
  }
  return [...names].filter((name) => !ofAnswers.has(name))
}

/** The members that readers ask for whose names are in tables. */
function namesReadAtRuntime(): readonly string[] {
  const names = new Set<string>()
  const note = (name: string | symbol): void => void (typeof name === 'string' && names.add(name))
  const watched = (body: JsonObject): JsonObject =>
    new Proxy(body, {
      get: (target, name) => (note(name), Reflect.get(target, name)),
      has: (target, name) => (note(name), Reflect.has(target, name)),
      getOwnPropertyDescriptor: (target, name) => (note(name), Reflect.getOwnPropertyDescriptor(target, name)),
    })
  for (const format of formats) {
    const { path: own } = formatById(format)
    for (const { path, body } of recordedRequests()) {
      if (body === undefined || !path.split('?', 1)[0]!.endsWith(own)) continue
      const conversation = formatById(format).readRequest(watched(body))
      relayChanges(relayById(format), watched(body), conversation, targetOf(conversation))
      relayById(format).fits?.(watched(body), targetOf(conversation).dialect)
      readRoutingPreferences(watched(body))
    }
  }
  // What spreading a body reads besides.
  names.delete('toJSON')
  return [...names]
}

function member(key: string) {
  return { key, keyStart: 0, valueStart: 0, valueEnd: 0 }
}
