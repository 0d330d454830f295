import { describe, expect, test } from 'vitest'
import { fuse } from '../../../../src/gateway/fusion/engine/fusion.ts'
import type { FusionOutcome } from '../../../../src/gateway/fusion/engine/outcome.ts'
import { settingsOf } from '../../../../src/gateway/fusion/engine/settings.ts'
import { question } from '../../../simulation/conversations.ts'
import { expectEncodable } from '../../../simulation/in-every-format.ts'
import { expectSound } from '../../../simulation/invariants.ts'
import { byPlace, judgeReply, judgeSays, judgeSecret } from '../../../simulation/simulated-judge.ts'
import {
  SimulatedModels,
  simulatedMember,
  streamedAnswer,
  textAnswer,
  type Behave,
  type Behaviour,
} from '../../../simulation/simulated-models.ts'
import { SimulatedTime } from '../../../simulation/simulated-time.ts'

const hang: Behaviour = { steps: [], hangs: true }
const empty = textAnswer('', 500)

/** The failures of panel members, in turn. */
const failures: readonly Behaviour[] = [
  { steps: [{ afterMs: 300, fails: 'reset' }] },
  hang,
  empty,
  { steps: [{ afterMs: 100, events: [{ type: 'text', text: 'half an answ' }] }] },
  { steps: [{ afterMs: 5, fails: 'rate_limited' }] },
]

type Judge = Behave
const judges: Readonly<Record<string, Judge>> = {
  'ok, synthesize': (_, { conversation }) => judgeSays(judgeReply({ scores: byPlace(conversation, 8) })),
  'ok, adopt': (_, { conversation }) =>
    judgeSays(judgeReply({ answerType: 'closed', verdict: 'adopt', scores: byPlace(conversation, 9) })),
  'ok, insufficient': (_, { conversation }) => judgeSays(judgeReply({ scores: byPlace(conversation, 2) })),
  'bad JSON': () => judgeSays(`{"scores": ${judgeSecret}`),
  'a schema violation': () => judgeSays(`{"note": "${judgeSecret}", "verdict": "adopt"}`),
  'a timeout': () => hang,
  'an empty reply': () => empty,
  'an error': () => ({ steps: [{ afterMs: 50, fails: 'server_error' }] }),
  'bad JSON, repaired': (_, { role, conversation }) =>
    role === 'repair' ? judgeSays(judgeReply({ scores: byPlace(conversation, 8) })) : judgeSays(judgeSecret),
  'a timeout, then another judge': (_, { conversation }, nth) =>
    nth === 0 ? hang : judgeSays(judgeReply({ scores: byPlace(conversation, 8) })),
}

const written = 'The reply is forty-two.'
const syntheses: Readonly<Record<string, Behaviour>> = {
  ok: streamedAnswer(written),
  'fails early': { steps: [{ afterMs: 400, fails: 'server_error' }] },
  'is silent': hang,
  'says nothing': empty,
  'fails late': { steps: [...streamedAnswer(written).steps.slice(0, 2), { afterMs: 10, fails: 'reset' }] },
  'falls silent': { steps: streamedAnswer(written).steps.slice(0, 2), hangs: true },
}

interface Case {
  readonly n: number
  readonly answering: number
  readonly judge: Judge
  readonly synthesis: Behaviour
  readonly stream: boolean
  readonly fallback?: Behaviour
}

async function run({ n, answering, judge, synthesis, stream, fallback = hang }: Case) {
  const members = Array.from({ length: n }, () => simulatedMember())
  const behave: Behave = (member, call, nth) => {
    const index = members.indexOf(member)
    switch (call.role) {
      case 'panel':
      case 'refill':
      case 'hedge':
        if (index < answering) return textAnswer(`Answer number ${index}.`, 1_000 * (index + 1))
        return failures[index % failures.length]!
      case 'judge':
      case 'repair':
      case 'swap':
        return judge(member, call, nth)
      case 'synthesis':
        return synthesis
      case 'fallback':
        return fallback
      case 'outer':
        throw new Error('a fusion has no outer model')
    }
  }
  const world = new SimulatedModels(new SimulatedTime(), behave)
  const settings = { ...settingsOf('balanced', stream), panelSize: n }
  const request = { conversation: question(undefined, { stream }), members, settings }
  const outcome = await world.clock.until(fuse(request, world, new AbortController().signal))
  expectEncodable(world.emitted, { ...request.conversation, streamUsage: true }, outcome.usage, outcome.error)
  return { world, outcome, text: await expectSound(world, outcome) }
}

function expectAnswer({ answering, stream }: Case, synthesis: string, outcome: FusionOutcome, text: string): void {
  const { record, error } = outcome
  const { mode } = record
  expect(record.answered).toBeGreaterThanOrEqual(Math.min(answering, record.quorum))
  expect(record.answered).toBeLessThanOrEqual(answering)
  const isBrokenLate = synthesis === 'fails late' || synthesis === 'falls silent'
  const wasWriting = record.calls.some(({ role }) => role === 'synthesis')
  if (stream && isBrokenLate && wasWriting) {
    expect(error?.code).toBe('upstream_broken')
    expect(written.startsWith(text.trim())).toBe(true)
    return
  }
  expect(error).toBeUndefined()
  if (mode === 'synthesised' || mode === 'restarted') expect(text).toBe(written)
  else expect(text).toMatch(/^Answer number \d\.$/)
}

describe('if one member answered, there is an answer whatever else fails, streamed and non-streaming, with any panel size', () => {
  const cases = Object.entries(judges).flatMap(([judgeName, judge]) =>
    Object.entries(syntheses).map(([synthesisName, synthesis]) => ({ judgeName, judge, synthesisName, synthesis })),
  )
  test.each(cases)('the judge: $judgeName; the synthesis: $synthesisName', async (row) => {
    const { judge, synthesis, synthesisName } = row
    for (const stream of [true, false]) {
      for (const n of [1, 2, 3, 5, 8]) {
        for (let answering = 1; answering <= n; answering++) {
          const of = { n, answering, judge, synthesis, stream }
          const { outcome, text } = await run(of)
          expectAnswer(of, synthesisName, outcome, text)
        }
      }
    }
  })
})

describe('if no member answered', () => {
  const judge = judges['ok, synthesize']!
  const synthesis = syntheses['ok']!

  test.each([true, false])('a single model is asked, without fusion (stream: %s)', async (stream) => {
    for (const n of [1, 2, 3, 5]) {
      const { outcome, text } = await run({
        n,
        answering: 0,
        judge,
        synthesis,
        stream,
        fallback: streamedAnswer('Alone.'),
      })
      expect(text).toBe('Alone.')
      expect(outcome.record).toMatchObject({
        mode: 'fallback',
        answered: 0,
        degraded: expect.arrayContaining(['panel_failed']),
      })
      expect(outcome.error).toBeUndefined()
    }
  })

  test.each([
    ['server_error', 'server_is_overloaded'],
    ['unreachable', 'server_is_overloaded'],
  ] as const)('if that fails too with %s, the client gets an error and no part of an answer', async (fails, code) => {
    const fallback = { steps: [{ afterMs: 10, fails }] }
    const { outcome, text, world } = await run({ n: 3, answering: 0, judge, synthesis, stream: true, fallback })
    expect(outcome.error?.code).toBe(code)
    expect(text).toBe('')
    expect(world.emitted.some(({ type }) => type === 'finish')).toBe(false)
  })

  test('if that hangs too, the overall deadline ends it with a timeout', async () => {
    const { outcome, world } = await run({ n: 3, answering: 0, judge, synthesis, stream: true })
    expect(outcome.error?.code).toBe('upstream_timeout')
    expect(outcome.record.totalMs).toBeLessThanOrEqual(120_000)
    expect(world.open).toBe(0)
  })
})

describe('errors report what all models have in common', () => {
  test.each([
    ['rejected_content', 'content_rejected'],
    ['context_too_long', 'context_length_exceeded'],
    ['rejected_credentials', 'upstream_credentials_rejected'],
    ['timeout', 'upstream_timeout'],
    ['rate_limited', 'server_is_overloaded'],
  ] as const)('%s becomes %s', async (fails, code) => {
    const members = Array.from({ length: 3 }, () => simulatedMember())
    const world = new SimulatedModels(new SimulatedTime(), () => ({ steps: [{ afterMs: 20, fails }] }))
    const request = { conversation: question(), members, settings: settingsOf('balanced', true) }
    const outcome = await world.clock.until(fuse(request, world, new AbortController().signal))
    expect(outcome.error?.code).toBe(code)
    await expectSound(world, outcome)
  })

  test('if all time out before the deadline, the error names the time that passed', async () => {
    const members = Array.from({ length: 3 }, () => simulatedMember())
    const fails = 'timeout' as const
    const world = new SimulatedModels(new SimulatedTime(), () => ({ steps: [{ afterMs: 9_500, fails }] }))
    const request = { conversation: question(), members, settings: settingsOf('balanced', true) }
    const outcome = await world.clock.until(fuse(request, world, new AbortController().signal))
    const { totalMs } = outcome.record
    expect(outcome.error?.code).toBe('upstream_timeout')
    expect(totalMs).toBeLessThan(request.settings.totalMs - 1_000)
    expect(outcome.error?.facts.words?.['seconds']).toBe(Math.floor(totalMs / 1_000))
  })
})
