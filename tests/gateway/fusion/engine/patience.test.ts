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
/** The time limits of a stream with the preset `balanced`. */
const { panelMs, totalMs } = settingsOf('balanced', true)

/** One streamed fusion whose members answer after these times, or never; judge and writer are fast. */
async function run(afterMs: readonly (number | undefined)[]): Promise<{ record: FusionRecord; text: string }> {
  const members = afterMs.map(() => simulatedMember())
  const panel = (member: FusionMember): Behaviour => {
    const index = members.indexOf(member)
    const ms = afterMs[index]
    return ms === undefined ? hangs : textAnswer(`Answer ${index}.`, ms)
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

test('a failed judge is not replaced by a member that was just aborted for being slow', async () => {
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

test('three models that think for a minute all count, although the panel’s time limit is shorter', async () => {
  const { record, text } = await run([60_000, 61_000, 62_000])
  expect(record).toMatchObject({ mode: 'synthesised', answered: 3, panelMs: 62_000 })
  expect(record.calls.filter(({ role }) => role === 'panel')).toHaveLength(3)
  expect(record.totalMs).toBeLessThan(totalMs)
  expect(text).toBe('Written.')
})

test('after the panel’s time limit one answer is enough, and the others get a grace period', async () => {
  const { record, text } = await run([undefined, 60_000, undefined])
  expect(record).toMatchObject({ mode: 'single', answered: 1, panelMs: 64_500 })
  expect(text).toBe('Answer 1.')
})

test('if one member has answered at the panel’s time limit, the panel ends', async () => {
  const { record } = await run([undefined, panelMs - 1_000, 60_000])
  expect(record).toMatchObject({ mode: 'single', answered: 1, panelMs })
})

test('a reserve is asked if no member has answered at the panel’s time limit', async () => {
  const { record, text } = await run([undefined, undefined, undefined, 5_000])
  expect(record).toMatchObject({ mode: 'single', answered: 1, panelMs: panelMs + 5_000 + 4_500 })
  expect(record.calls.map(({ role }) => role).toSorted()).toEqual(['hedge', 'panel', 'panel', 'panel'])
  expect(text).toBe('Answer 3.')
})

test('a panel that never answers leaves enough time for one model to answer alone', async () => {
  const { record, text } = await run([undefined, undefined, undefined])
  expect(record).toMatchObject({ mode: 'fallback', answered: 0, panelMs: 0.7 * totalMs })
  expect(record.totalMs).toBeLessThan(totalMs)
  expect(text).toBe('Written.')
})
