import { describe, expect, test } from 'vitest'
import type { Conversation, Turn } from '../../../../src/domain/conversation.ts'
import { openaiChat } from '../../../../src/formats/openai-chat/openai-chat.ts'
import { withNotes, writerRequest } from '../../../../src/gateway/fusion/engine/answer/synthesis-request.ts'
import { buildFence } from '../../../../src/gateway/fusion/engine/fence.ts'
import { PanelRequests } from '../../../../src/gateway/fusion/engine/panel/panel-request.ts'
import { settingsOf } from '../../../../src/gateway/fusion/engine/settings.ts'
import { transcriptOf, withoutTools } from '../../../../src/gateway/fusion/engine/transcript.ts'
import { question } from '../../../simulation/conversations.ts'
import { textOf } from '../../../simulation/simulated-judge.ts'
import { simulatedMember } from '../../../simulation/simulated-models.ts'

const say = (role: 'user' | 'system' | 'developer', text: string): Turn => ({ role, parts: [{ type: 'text', text }] })
const answer = (text: string): Turn => ({ role: 'assistant', parts: [{ type: 'text', text }] })
const call = (id: string): Turn => ({
  role: 'assistant',
  parts: [
    { type: 'reasoning', text: 'hm', sealed: 'sealed-by-its-provider' },
    { type: 'call', kind: 'function', id, name: 'look', arguments: `{"at":"${id}"}` },
  ],
})
const result = (id: string, text: string): Turn => ({
  role: 'tool',
  callId: id,
  kind: 'function',
  parts: [{ type: 'text', text }],
})

const tools: Conversation['tools'] = [
  { type: 'function', name: 'look', description: 'Looks at a place. '.repeat(40) },
  { type: 'custom', name: 'patch', namespace: 'edit' },
  { type: 'hosted', declaration: { type: 'web_search' } },
]
const member = simulatedMember()
const slot = { member, angle: 0 }
const settings = settingsOf('balanced', true)
const dialect = {
  maxTokensField: 'max_completion_tokens',
  developerRole: true,
  streamUsage: true,
  refusedFields: [],
} as const

describe('a panel member’s request', () => {
  test('it has instructions on how to answer, followed by the conversation', () => {
    const asked = new PanelRequests(question('Why?'), settings).requestFor(slot, member)
    expect(asked.turns.map(({ role }) => role)).toEqual(['system', 'user'])
    expect(asked.turns[1]).toEqual(say('user', 'Why?'))
    expect(asked).toMatchObject({ stream: false, tools: [], hints: { store: false } })
    expect(JSON.stringify(asked)).not.toContain('NEXT ACTION')
  })

  test('its instructions are added to existing ones, because some models read only one message', () => {
    const turns = [say('developer', 'Be brief.'), say('user', 'Why?')]
    const joined = new PanelRequests(question('', { turns }), settings).requestFor(slot, member)
    expect(joined.turns.map(({ role, parts }) => [role, parts.length])).toEqual([
      ['developer', 2],
      ['user', 1],
    ])
    const instructing = question('Why?', { hints: { instructions: 'Be kind.' } })
    const instructed = new PanelRequests(instructing, settings).requestFor(slot, member)
    expect(instructed.turns).toEqual(instructing.turns)
    expect(instructed.hints.instructions).toMatch(/^Be kind\.\n\nAnswer the last message/)
  })

  test('it has tool names instead of tools, and earlier calls and results as text, in an order that every format can express', () => {
    const turns = [say('user', 'Look.'), call('c1'), result('c1', 'a wall'), answer('A wall.'), say('user', 'And now?')]
    const asked = new PanelRequests(question('', { turns, tools }), settings).requestFor(slot, member)
    const text = textOf(asked)
    expect(text).toContain('[tool call: look {"at":"c1"}]')
    expect(text).toContain('[tool result: a wall]')
    expect(text).toContain('NEXT ACTION')
    expect(text).toContain('- look: Looks at a place.')
    expect(text).toContain('- edit.patch')
    expect(text).toContain('- web_search')
    expect(text).not.toContain('sealed-by-its-provider')
    expect(asked.turns.some(({ role }) => role === 'tool')).toBe(false)
    const body = openaiChat.writeRequest(asked, { model: 'm', stream: false, dialect })
    expect(body['tools']).toBeUndefined()
    const roles = (body['messages'] as readonly { readonly role: string }[]).map(({ role }) => role)
    expect(roles).toEqual(['system', 'user', 'assistant', 'user', 'assistant', 'user'])
  })

  test('several samples of one family get different instructions', () => {
    const requests = new PanelRequests(question('Why?'), settings)
    const prompts = [0, 1, 2].map((angle) => textOf(requests.requestFor({ member, angle }, member)))
    expect(new Set(prompts).size).toBe(3)
    const heats = [0, 1, 2].map((angle) => requests.requestFor({ member, angle }, member).sampling.temperature)
    expect(heats).toEqual([undefined, 0.7, 1])
  })

  test('a reasoning model gets no temperature and more room', () => {
    const thinker = simulatedMember({ capabilities: { reasoning: true } })
    const asked = new PanelRequests(question('Why?', { sampling: { temperature: 1 } }), settings).requestFor(
      slot,
      thinker,
    )
    expect(asked.sampling).toEqual({ maxOutputTokens: 4 * 4_096 })
  })
})

describe('a conversation without tools', () => {
  test('the last six results are kept, and older ones are mentioned', () => {
    const turns = Array.from({ length: 9 }, (_, index) => [
      call(`c${index}`),
      result(`c${index}`, `seen ${index}`),
    ]).flat()
    const text = withoutTools(turns)
      .map(({ parts }) => parts.map((part) => ('text' in part ? part.text : '')).join())
      .join()
    expect(text).not.toContain('seen 2')
    for (let index = 3; index < 9; index++) expect(text).toContain(`seen ${index}`)
    expect(text.match(/left out: it is long past/g)).toHaveLength(3)
  })

  test('a long result is truncated in the middle', () => {
    const long = `begin ${'x'.repeat(50_000)} end`
    const [, turn] = withoutTools([call('c'), result('c', long)])
    const [part] = turn!.parts
    expect(part).toMatchObject({
      type: 'text',
      text: expect.stringMatching(/^\[tool result: begin x+\n\[\d+ characters left out here\]\nx+ end\]$/),
    })
  })

  test('the judge gets the last message complete, without the oldest messages, and at most about 48 kB', () => {
    const turns = Array.from({ length: 60 }, (_, index) => [
      say('user', `question ${index} ${'x'.repeat(2_000)}`),
      answer(`answer ${index}`),
    ]).flat()
    const text = transcriptOf(question('', { turns: [...turns, say('user', `The last. ${'y'.repeat(20_000)}`)] }))
    expect(text).toContain(`[user] The last. ${'y'.repeat(20_000)}`)
    expect(text).toContain('answer 59')
    expect(text).not.toContain('question 3 ')
    expect(text).toMatch(/^\[\d+ earlier messages left out\]/)
    expect(text.length).toBeLessThan(49_000)
  })
})

describe('the writer’s request', () => {
  const fence = buildFence([], (count) => Uint8Array.from({ length: count }, (_, index) => index))
  const answers = ['one', 'two'].map((text, index) => ({
    label: 'AB'[index]!,
    text: `${text} ${'z'.repeat(30_000)}`,
    isTruncated: false,
    duplicates: [],
    answer: { member, text, truncated: false },
  }))
  const notes = { candidates: answers, analysis: undefined, fence }

  test('it is the caller’s own request, with the notes after the user’s text, every line marked', () => {
    const turns = [say('system', 'S'), say('user', 'Why?'), say('developer', 'D')]
    const asked = withNotes(writerRequest(question('', { turns, tools }), true, false), member, notes)
    expect(asked).toMatchObject({ stream: true, tools })
    expect(asked.turns.map(({ role }) => role)).toEqual(['system', 'user', 'developer'])
    const [own, added] = asked.turns[1]!.parts
    expect(own).toEqual({ type: 'text', text: 'Why?' })
    const lines = (added?.type === 'text' ? added.text : '').split('\n')
    for (const line of lines.filter((text) => /one|two|zzz/.test(text))) expect(line.startsWith(fence.start)).toBe(true)
  })

  test('the notes are shortened to fit the model’s context window', () => {
    const small = simulatedMember({ contextWindow: 16_000 })
    const request = writerRequest(question('Why?'), true, false)
    expect(textOf(withNotes(request, small, notes)).length).toBeLessThan(14_000)
    expect(textOf(withNotes(request, member, notes)).length).toBeGreaterThan(60_000)
  })

  test('it has nothing that only the service may store or refer to', () => {
    const hints = { metadata: { a: 'b' }, previousResponseId: 'resp_1', store: true, user: 'u' }
    const asked = writerRequest(
      { ...question('Why?', { hints }), fusionTool: { type: 'svc-router:fusion' } },
      false,
      true,
    )
    expect(asked).not.toHaveProperty('fusionTool')
    expect(asked.hints).toEqual({ store: false, user: 'u' })
    expect(asked.sampling.maxOutputTokens).toBe(8_192)
  })
})
