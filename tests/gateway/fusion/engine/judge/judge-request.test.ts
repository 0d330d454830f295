import { expect, test } from 'vitest'
import { fuse } from '../../../../../src/gateway/fusion/engine/fusion.ts'
import { settingsOf } from '../../../../../src/gateway/fusion/engine/settings.ts'
import { question } from '../../../../simulation/conversations.ts'
import { candidatesIn, judgeReply, judgeSays } from '../../../../simulation/simulated-judge.ts'
import {
  SimulatedModels,
  simulatedMember,
  streamedAnswer,
  textAnswer,
} from '../../../../simulation/simulated-models.ts'
import { SimulatedTime } from '../../../../simulation/simulated-time.ts'

test.each([
  ['a judge with structured outputs is asked for a JSON schema', true],
  ['a judge without structured outputs is not', false],
])('%s', async (_, has) => {
  const members = [1, 2, 3].map(() => simulatedMember({ capabilities: { structured_outputs: has } }))
  const world = new SimulatedModels(new SimulatedTime(), (_member, { role, conversation }) => {
    if (role === 'panel') return textAnswer('An answer.', 1_000)
    if (role === 'synthesis') return streamedAnswer('The answer.')
    const scores = Object.fromEntries(candidatesIn(conversation).map(({ label }): [string, number] => [label, 5]))
    return judgeSays(judgeReply({ answerType: 'open', scores }))
  })
  const request = { conversation: question('Why?'), members, settings: settingsOf('balanced', true) }
  await world.clock.until(fuse(request, world, new AbortController().signal))
  const [asked] = world.seen.filter(({ call }) => call.role === 'judge')
  expect(asked).toBeDefined()
  expect(asked!.call.conversation.outputFormat?.type).toBe(has ? 'json_schema' : undefined)
})
