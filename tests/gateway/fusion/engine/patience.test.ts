import { expect, test } from 'vitest'
import type { FusionRecord } from '../../../../src/domain/fusion-record.ts'
import { fuse } from '../../../../src/gateway/fusion/engine/fusion.ts'
import type { FusionMember } from '../../../../src/gateway/fusion/engine/ports.ts'
import { settingsOf } from '../../../../src/gateway/fusion/engine/settings.ts'
import { question } from '../../../simulation/conversations.ts'
import { expectSound } from '../../../simulation/invariants.ts'
import { byPlace, judgeReply, judgeSays } from '../../../simulation/simulated-judge.ts'
import {
  SimulatedModels,
  simulatedMember,
  streamedAnswer,
  textAnswer,
  type Behaviour,
} from '../../../simulation/simulated-models.ts'
import { SimulatedTime } from '../../../simulation/simulated-time.ts'

const hangs: Behaviour = { steps: [], hangs: true }
/** What a stream has by the preset `balanced`. */
const { panelMs, totalMs } = settingsOf('balanced', true)

/** One streamed fusion of members of which each answers after so long, or never; judge and writer are quick. */
async function run(afterMs: readonly (number | undefined)[]): Promise<{ record: FusionRecord; text: string }> {
  const members = afterMs.map(() => simulatedMember())
  const panel = (member: FusionMember): Behaviour => {
    const place = members.indexOf(member)
    const ms = afterMs[place]
    return ms === undefined ? hangs : textAnswer(`Answer ${place}.`, ms)
  }
  const world = new SimulatedModels(new SimulatedTime(), (member, { role, conversation }) => {
    if (role === 'synthesis' || role === 'fallback') return streamedAnswer('Written.')
    return role === 'judge' ? judgeSays(judgeReply({ scores: byPlace(conversation, 6) })) : panel(member)
  })
  const request = { conversation: question(), members, settings: settingsOf('balanced', true) }
  const outcome = await world.clock.until(fuse(request, world, new AbortController().signal))
  expect(outcome.error).toBeUndefined()
  return { record: outcome.record, text: await expectSound(world, outcome) }
}

test('a judge that fails is not replaced by the member that was just cut off for being slow', async () => {
  const [quick, other, slow] = [simulatedMember(), simulatedMember(), simulatedMember({ quality: 85 })]
  const judges: string[] = []
  const world = new SimulatedModels(new SimulatedTime(), (member, { role }) => {
    if (role === 'judge') judges.push(member.id)
    if (role === 'panel')
      return member === slow
        ? hangs
        : textAnswer(member === quick ? 'Yes, by all means.' : 'Certainly not: it would fail.', 1_000)
    return role === 'judge' ? { steps: [{ afterMs: 50, fails: 'server_error' }] } : streamedAnswer('Written.')
  })
  const settings = settingsOf('balanced', true)
  const request = { conversation: question(), members: [quick, other, slow], settings }
  const outcome = await world.clock.until(fuse(request, world, new AbortController().signal))
  expect(outcome.error).toBeUndefined()
  expect(judges.toSorted()).toEqual([quick.id, other.id].toSorted())
})

test('three models that think for a minute are all heard, although the limit of the panel is shorter', async () => {
  const { record, text } = await run([60_000, 61_000, 62_000])
  expect(record).toMatchObject({ mode: 'synthesised', answered: 3, panelMs: 62_000 })
  expect(record.calls.filter(({ role }) => role === 'panel')).toHaveLength(3)
  expect(record.totalMs).toBeLessThan(totalMs)
  expect(text).toBe('Written.')
})

test('behind the limit of the panel one answer is enough, and the others have a grace', async () => {
  const { record, text } = await run([undefined, 60_000, undefined])
  expect(record).toMatchObject({ mode: 'single', answered: 1, panelMs: 64_500 })
  expect(text).toBe('Answer 1.')
})

test('where one has answered at the limit of the panel nobody is waited for any longer', async () => {
  const { record } = await run([undefined, panelMs - 1_000, 60_000])
  expect(record).toMatchObject({ mode: 'single', answered: 1, panelMs })
})

test('who was not asked yet is asked when nobody has answered at the limit of the panel', async () => {
  const { record, text } = await run([undefined, undefined, undefined, 5_000])
  expect(record).toMatchObject({ mode: 'single', answered: 1, panelMs: panelMs + 5_000 + 4_500 })
  expect(record.calls.map(({ role }) => role).toSorted()).toEqual(['hedge', 'panel', 'panel', 'panel'])
  expect(text).toBe('Answer 3.')
})

test('a panel of which nobody ever answers leaves enough time for one model to answer alone', async () => {
  const { record, text } = await run([undefined, undefined, undefined])
  expect(record).toMatchObject({ mode: 'fallback', answered: 0, panelMs: 0.7 * totalMs })
  expect(record.totalMs).toBeLessThan(totalMs)
  expect(text).toBe('Written.')
})
