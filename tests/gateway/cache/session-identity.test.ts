import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import type { JsonObject } from '../../../src/domain/json.ts'
import { formatById } from '../../../src/formats/formats.ts'
import { sessionIdentity, statedSession } from '../../../src/gateway/cache/session-identity.ts'

const chat = (body: JsonObject) =>
  formatById('openai-chat').readRequest({ model: 'p', messages: [{ role: 'user', content: 'Why?' }], ...body })
const identityOf = (body: JsonObject, stated?: string) => sessionIdentity(stated, body, chat(body))

describe('the session that a client names in its headers', () => {
  test.each([
    ['x-session-id', { 'x-session-id': 'a', 'session-id': 'b' }, 'a'],
    ['the one of Claude Code', { 'x-claude-code-session-id': 'a', 'thread-id': 'b' }, 'a'],
    ['the one of Codex', { 'session-id': 'a', 'thread-id': 'b' }, 'a'],
    ['the affinity of opencode', { 'x-session-affinity': 'a' }, 'a'],
    ['none of a repeated header', { 'x-session-id': ['a', 'b'] }, undefined],
    ['none that is longer than 256 characters', { 'x-session-id': 'x'.repeat(257), 'thread-id': 't' }, 't'],
    ['none if it is empty', { 'x-session-id': '' }, undefined],
  ])('is %s', (_, headers, session) => {
    expect(statedSession(headers)).toBe(session)
  })
})

describe('the identity of a session', () => {
  test('is that of the headers before everything else', () => {
    expect(identityOf({ session_id: 'b', prompt_cache_key: 'c' }, 'a')).toEqual({ kind: 'named', name: 'a' })
  })

  test.each([
    [{ session_id: 'a', prompt_cache_key: 'b' }, 'a'],
    [{ metadata: { user_id: 'user_1f_account__session_0a1b2c3d-0000' } }, '0a1b2c3d-0000'],
    [{ metadata: { user_id: JSON.stringify({ device_id: 'd', session_id: 's-1' }) } }, 's-1'],
  ] as const)('is what the body %j names', (body, name) => {
    expect(identityOf(body)).toEqual({ kind: 'named', name })
  })

  test('is the key for the provider’s cache before the user', () => {
    const metadata = { user_id: 'user_1f_account__session_0a1b2c3d-0000' }
    expect(identityOf({ prompt_cache_key: 'b', metadata })).toEqual({ kind: 'key', name: 'b' })
  })

  test.each([
    { metadata: { user_id: 'user_1' } },
    { metadata: { user_id: '{"session_id":' } },
    { metadata: { user_id: `{"session_id":"${'x'.repeat(2_000)}"}` } },
    { metadata: 'x', session_id: 7, prompt_cache_key: '' },
  ])('is the opening if the body names no usable one (%#)', (body) => {
    expect(sessionIdentity(undefined, body, chat({})).kind).toBe('opening')
  })

  test('is the conversation that the request continues', () => {
    const body = { model: 'p', input: 'Why?', conversation: 'conv_1' }
    const conversation = formatById('openai-responses').readRequest(body)
    expect(sessionIdentity(undefined, body, conversation)).toEqual({ kind: 'named', name: 'conv_1' })
  })

  test('is the same opening for every later turn, and another one for another first question', () => {
    const messages = [
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: 'Why?' },
    ]
    const later = [...messages, { role: 'assistant', content: 'So.' }, { role: 'user', content: 'And then?' }]
    const first = identityOf({ messages })
    expect(first.kind).toBe('opening')
    expect(identityOf({ messages: later })).toEqual(first)
    expect(identityOf({ messages: [messages[0]!, { role: 'user', content: 'How?' }] })).not.toEqual(first)
    expect(identityOf({ messages: [{ role: 'system', content: 'Be long.' }, messages[1]!] })).not.toEqual(first)
  })

  test('is another opening for a long text that differs only in the middle', () => {
    const instructions = 'Be brief, and say why. '.repeat(500)
    const of = (customer: string) =>
      identityOf({
        messages: [
          { role: 'system', content: `${instructions}The customer is ${customer}. ${instructions}` },
          { role: 'user', content: 'Why?' },
        ],
      })
    expect(of('10000001')).toEqual(of('10000001'))
    expect(of('10000001')).not.toEqual(of('10000002'))
  })

  test.each(['codex-turn1.json', 'claude-code-messages.json'])('is named by the recorded request %s', (file) => {
    const { headers } = JSON.parse(readFileSync(`tests/fixtures/client-requests/${file}`, 'utf8')) as {
      headers: Record<string, string>
    }
    expect(statedSession(headers)).toEqual(expect.any(String))
  })
})
