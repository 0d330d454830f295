import { expect, test } from 'vitest'
import type { AnswerEvent } from '../../../../src/domain/conversation.ts'
import { fuse } from '../../../../src/gateway/fusion/engine/fusion.ts'
import type { FusionMember } from '../../../../src/gateway/fusion/engine/ports.ts'
import { settingsOf } from '../../../../src/gateway/fusion/engine/settings.ts'
import { question } from '../../../simulation/conversations.ts'
import { byPlace, judgeReply, judgeSays } from '../../../simulation/simulated-judge.ts'
import { SimulatedModels, simulatedMember, streamedAnswer, textAnswer } from '../../../simulation/simulated-models.ts'
import { SimulatedTime } from '../../../simulation/simulated-time.ts'

const members: readonly FusionMember[] = [simulatedMember(), simulatedMember(), simulatedMember()]

/** The events of one fusion; the fence's nonce and all other unpredictable bytes come from `bytesSeed`. */
async function emittedWith(seed: number | undefined, text: string, bytesSeed: number): Promise<readonly AnswerEvent[]> {
  const world = new SimulatedModels(
    new SimulatedTime(),
    (member, { role, conversation }) => {
      const index = members.indexOf(member)
      // The first candidate is adopted or named by the writer, so the output reveals the order.
      if (role === 'panel') return textAnswer(`Answer ${index} to "${text}".`, 500 * (3 - index))
      if (role === 'judge') {
        const answerType = text.length % 2 === 0 ? 'closed' : 'open'
        return judgeSays(judgeReply({ answerType, scores: byPlace(conversation, 9) }))
      }
      return streamedAnswer('A reply ⟦ with an odd ⟧ bracket.')
    },
    bytesSeed,
  )
  const settings = { ...settingsOf('balanced', true), ...(seed === undefined ? {} : { seed }) }
  await world.clock.until(
    fuse({ conversation: question(text), members, settings }, world, new AbortController().signal),
  )
  return world.emitted
}

test('the same seed and upstream bytes give the same output, byte for byte, in 1000 of 1000 replays', async () => {
  for (let replay = 0; replay < 500; replay++) {
    const text = `Question ${'?'.repeat(replay % 7)}`
    const seed = replay % 25
    const [first, second] = [await emittedWith(seed, text, replay), await emittedWith(seed, text, replay + 100_000)]
    expect(JSON.stringify(second)).toBe(JSON.stringify(first))
  }
})

test('without a seed, the order of the candidates is random', async () => {
  const outputs = new Set<string>()
  for (let replay = 0; replay < 50; replay++)
    outputs.add(JSON.stringify(await emittedWith(undefined, 'Well?!', replay)))
  expect(outputs.size).toBe(3)
})
