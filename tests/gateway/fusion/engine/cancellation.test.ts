import { describe, expect, test } from 'vitest'
import { fuse } from '../../../../src/gateway/fusion/engine/fusion.ts'
import { settingsOf } from '../../../../src/gateway/fusion/engine/settings.ts'
import { question } from '../../../simulation/conversations.ts'
import { expectSound } from '../../../simulation/invariants.ts'
import { byPlace, judgeReply, judgeSays } from '../../../simulation/simulated-judge.ts'
import { SimulatedModels, simulatedMember, streamedAnswer, textAnswer } from '../../../simulation/simulated-models.ts'
import { SimulatedTime } from '../../../simulation/simulated-time.ts'

/** A time within each stage of the scripted fusion, in milliseconds from its start. */
const stages = {
  'the panel': 1_000,
  'the judge': 4_500,
  'the writer, before its first word': 6_050,
  'the writer': 7_500,
}

function world(isDeaf: boolean): SimulatedModels {
  return new SimulatedModels(new SimulatedTime(), (_, { role, conversation }) => {
    if (role === 'panel') return { ...textAnswer('An answer.', 4_000), isDeaf }
    if (role === 'judge') return { ...judgeSays(judgeReply({ scores: byPlace(conversation, 8) }), 2_000), isDeaf }
    return { ...streamedAnswer('one two three four five six seven eight nine ten', 300), isDeaf }
  })
}

describe('when the client disconnects, everything is aborted at once', () => {
  test.each(Object.entries(stages))('during %s', async (_, afterMs) => {
    for (const isDeaf of [false, true]) {
      const models = world(isDeaf)
      const caller = new AbortController()
      const startedMs = models.clock.nowMs()
      let emittedThen = 0
      models.clock.after(afterMs, () => {
        caller.abort()
        // In the same turn of the event loop: no promise has to settle first.
        expect(models.open).toBe(0)
        emittedThen = models.emitted.length
      })
      const members = [simulatedMember(), simulatedMember(), simulatedMember()]
      const request = { conversation: question(), members, settings: settingsOf('balanced', true) }
      const outcome = await models.clock.until(fuse(request, models, caller.signal))
      expect(models.clock.nowMs() - startedMs).toBe(afterMs)
      expect(models.emitted.length).toBe(emittedThen)
      expect(outcome).toMatchObject({ isClientDisconnected: true, record: { errorCode: 'client_closed' } })
      expect(outcome.error).toBeUndefined()
      await expectSound(models, outcome)
    }
  })

  test('if the client has already disconnected, no model is called', async () => {
    const models = world(false)
    const members = [simulatedMember(), simulatedMember()]
    const request = { conversation: question(), members, settings: settingsOf('balanced', true) }
    const outcome = await models.clock.until(fuse(request, models, AbortSignal.abort()))
    expect(outcome.isClientDisconnected).toBe(true)
    expect(models.seen).toEqual([])
    expect(models.emitted).toEqual([])
  })
})

test('a reader that never accepts the rest does not delay the fusion once it has disconnected', async () => {
  const models = new SimulatedModels(new SimulatedTime(), () => textAnswer('An answer. '.repeat(1_000), 1_000))
  models.onEmit = (count) => (count > 3 ? new Promise(() => {}) : undefined)
  const caller = new AbortController()
  models.clock.after(60_000, () => caller.abort())
  const request = {
    conversation: question(),
    members: [simulatedMember()],
    settings: { ...settingsOf('fast', true), panelSize: 1 },
  }
  const outcome = await models.clock.until(fuse(request, models, caller.signal))
  expect(outcome.isClientDisconnected).toBe(true)
})
