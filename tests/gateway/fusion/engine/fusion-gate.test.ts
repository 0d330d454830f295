import { describe, expect, test } from 'vitest'
import type { InputTurn, Turn } from '../../../../src/domain/conversation.ts'
import { ServiceError } from '../../../../src/domain/errors.ts'
import { assertFusable, decideGate } from '../../../../src/gateway/fusion/engine/fusion-gate.ts'
import { question } from '../../../simulation/conversations.ts'

const user: InputTurn = { role: 'user', parts: [{ type: 'text', text: 'Do it.' }] }
const developer: Turn = { role: 'developer', parts: [{ type: 'text', text: 'Be brief.' }] }
const reminder: InputTurn = {
  role: 'user',
  parts: [{ type: 'text', text: '<system-reminder>\nKeep the list of tasks up to date.\n</system-reminder>' }],
}
const reply: Turn = { role: 'assistant', parts: [{ type: 'text', text: 'Done.' }] }
const call: Turn = {
  role: 'assistant',
  parts: [{ type: 'call', kind: 'function', id: 'c', name: 'look', arguments: '{}' }],
}
const result: Turn = { role: 'tool', callId: 'c', kind: 'function', parts: [{ type: 'text', text: 'seen' }] }

describe('only a user’s turn is deliberated', () => {
  test.each<[string, readonly Turn[], ReturnType<typeof decideGate>]>([
    ['a first question', [user], { run: true }],
    ['a further question', [user, reply, user], { run: true }],
    ['a question after a tool loop', [user, call, result, reply, user], { run: true }],
    ['instructions after the question', [user, developer], { run: true }],
    ['a tool result', [user, call, result], { run: false, reason: 'tool_loop' }],
    ['a tool result with instructions after it', [user, call, result, developer], { run: false, reason: 'tool_loop' }],
    [
      'a tool result with a reminder from the agent',
      [user, call, result, reminder],
      { run: false, reason: 'tool_loop' },
    ],
    ['a tool result with a message from the user', [user, call, result, user], { run: true }],
    ['a question followed by a reminder from the agent', [user, reminder], { run: true }],
    [
      'a question with a reminder in the same turn',
      [{ role: 'user', parts: [...reminder.parts, ...user.parts] }],
      { run: true },
    ],
    ['an answer that is to be continued', [user, reply], { run: false, reason: 'not_a_user_turn' }],
    ['instructions alone', [developer], { run: false, reason: 'not_a_user_turn' }],
    ['nothing', [], { run: false, reason: 'not_a_user_turn' }],
  ])('%s', (_, turns, decision) => {
    expect(decideGate(question(undefined, { turns }))).toEqual(decision)
  })

  test('an agent session of one question and twenty tool results has exactly one deliberation', () => {
    const turns: Turn[] = [user]
    let runs = Number(decideGate(question(undefined, { turns })).run)
    for (let step = 0; step < 20; step++) {
      turns.push(call, result)
      runs += Number(decideGate(question(undefined, { turns })).run)
    }
    expect(runs).toBe(1)
  })

  test('an answer limited to fewer than 64 tokens is not deliberated', () => {
    expect(decideGate(question('Hi', { sampling: { maxOutputTokens: 63 } }))).toEqual({
      run: false,
      reason: 'short_answer',
    })
    expect(decideGate(question('Hi', { sampling: { maxOutputTokens: 64 } })).run).toBe(true)
  })
})

describe('what a fused answer cannot provide is rejected', () => {
  test.each([
    ['two answers', { choices: 2 }, 0, 'n'],
    ['logprobs', { logprobs: true }, 0, 'logprobs'],
    ['top logprobs', { topLogprobs: 3 }, 0, 'logprobs'],
    ['a fusion within a fusion', {}, 1, 'model'],
  ])('%s', (_, sampling, depth, param) => {
    const refuse = (): void => assertFusable(question('Hi', { sampling }), depth)
    expect(refuse).toThrow(ServiceError)
    expect(() => assertFusable(question('Hi', { sampling: { choices: 1, logprobs: false } }), 0)).not.toThrow()
    try {
      refuse()
    } catch (error) {
      expect(error).toMatchObject({ status: 400, facts: { param } })
    }
  })
})
