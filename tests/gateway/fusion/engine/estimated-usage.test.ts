import { expect, test } from 'vitest'
import type { AnswerEvent } from '../../../../src/domain/conversation.ts'
import { fuse } from '../../../../src/gateway/fusion/engine/fusion.ts'
import { settingsOf } from '../../../../src/gateway/fusion/engine/settings.ts'
import { question } from '../../../simulation/conversations.ts'
import { SimulatedModels, simulatedMember } from '../../../simulation/simulated-models.ts'
import { SimulatedTime } from '../../../simulation/simulated-time.ts'

const withoutUsage = (text: string): AnswerEvent[] => [
  { type: 'text', text },
  { type: 'finish', reason: 'stop' },
]

/** The estimated output of the members of a fusion that all answer with this text, and report no usage. */
async function outputOf(text: string): Promise<(number | undefined)[]> {
  const models = new SimulatedModels(new SimulatedTime(), () => ({
    steps: [{ afterMs: 10, events: withoutUsage(text) }],
  }))
  const members = [simulatedMember(), simulatedMember()]
  const request = { conversation: question(), members, settings: settingsOf('balanced', true) }
  const { record } = await models.clock.until(fuse(request, models, new AbortController().signal))
  return record.calls.flatMap(({ role, usage }) => (role === 'panel' ? [usage?.outputTokens] : []))
}

test('an estimate of the output counts bytes, like that of every other answer', async () => {
  expect(new Set(await outputOf('你好'.repeat(200)))).toEqual(new Set([300]))
  expect(new Set(await outputOf('abc'.repeat(400)))).toEqual(new Set([300]))
})
