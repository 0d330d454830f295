import { describe, expect, test } from 'vitest'
import { UpstreamError } from '../../src/domain/upstream.ts'
import { estimateCost } from '../../src/eval/estimate-cost.ts'
import { journalOf, readJournal, writeHead } from '../../src/eval/journal-lines.ts'
import { familyIds } from '../../src/eval/questions/question.ts'
import { textOf } from '../../src/eval/quoted-candidates.ts'
import { buildReport } from '../../src/eval/report.ts'
import { assumed } from '../../src/eval/simulated-world.ts'
import { writeReport } from '../../src/eval/write-report.ts'
import type { SubCall } from '../../src/gateway/fusion/engine/ports.ts'
import { membersNamed, worldOf } from './in-process.ts'

const asLines = (rows: readonly (readonly string[])[]): string => rows.map((row) => row.join(' | ')).join('\n')

describe('every arm sees one panel', () => {
  test('each member is asked once per question, however many arms use its answer', async () => {
    const { port, run, questions } = worldOf({ seed: 5, items: 24 })
    const { injected } = await run()
    const panel = port.seen.filter(({ role, request }) => role === 'panel' && request.includes('as if no other answer'))
    const key = ({ member, request }: (typeof panel)[number]): string => `${member} ${request}`
    expect(new Set(panel.map(key)).size).toBe(panel.length)
    // Three members of the panel, and two further samples of the best; of an injected one the tampered member is not asked.
    const whole = questions.length - injected.length
    expect(panel.length).toBe(whole * 5 + injected.length * 2)
  })

  test("the fusion uses the service's engine: judged, adopted or written, with its record", async () => {
    const { run } = worldOf({ seed: 6, items: 24 })
    const { questions } = await run()
    for (const { fusion, placebos, withoutAnalysis } of questions) {
      expect(fusion.record.asked).toBe(3)
      expect(fusion.record.answered).toBe(3)
      expect(fusion.record.verdict).toBeDefined()
      expect(placebos.random.record.mode).toBe('adopted')
      expect(withoutAnalysis.usd).toBeGreaterThan(0)
    }
  })

  test('placebo judges make no calls, so they cost as much as the panel', async () => {
    const { run } = worldOf({ seed: 8, items: 16 })
    const { questions } = await run()
    for (const { placebos, singles } of questions) {
      const panelUsd = singles.reduce((sum, { usd }) => sum + usd, 0)
      for (const placebo of Object.values(placebos)) expect(placebo.usd).toBeCloseTo(panelUsd, 12)
    }
  })

  test('self-consistency costs about as much as the fusion, and never much more', async () => {
    const { run } = worldOf({ seed: 9, items: 24 })
    const { questions } = await run()
    for (const { selfConsistency, fusion, samples } of questions) {
      expect(samples).toBeGreaterThanOrEqual(1)
      expect(selfConsistency.usd).toBeLessThan(fusion.usd + selfConsistency.usd / samples)
    }
  })

  test('one member alone is measured against its own panel', async () => {
    const { run, members } = worldOf({ seed: 3, items: 16, members: membersNamed('only') })
    const evaluation = await run()
    const [first] = evaluation.questions
    expect(first?.majority).toBeUndefined()
    expect(first?.selfPanel).toBeUndefined()
    expect(first?.fusion.record.isSelfPanel).toBe(true)
    expect(buildReport(evaluation, members)?.arms.map(({ name }) => name)).toContain('fusion')
  })
})

describe('money', () => {
  test.each([0, 0.01, 0.05, 0.2])('never more than %f USD is spent, whatever the seed', async (maxUsd) => {
    for (const seed of [1, 2, 3]) {
      const { run } = worldOf({ seed, items: 24 })
      const { spentUsd, stop } = await run({ maxUsd })
      expect(spentUsd).toBeLessThanOrEqual(maxUsd)
      expect(stop?.reason).toBe('money')
    }
  })

  test('after an early end, only questions that every arm answered are compared', async () => {
    const { run, members } = worldOf({ seed: 4, items: 48 })
    const evaluation = await run({ maxUsd: 0.25 })
    expect(evaluation.stop?.reason).toBe('money')
    expect(evaluation.questions.length).toBeGreaterThan(3)
    const report = buildReport(evaluation, members)
    for (const arm of report?.arms ?? []) expect(arm.questions).toBe(evaluation.questions.length)
  })

  test('the estimated maximum is never exceeded', async () => {
    const { run, questions, members, port } = worldOf({ seed: 12, items: 32 })
    const { most, typical } = estimateCost({ members, questions, preset: 'balanced' })
    const { spentUsd, calls } = await run()
    expect(calls).toBe(port.seen.length)
    expect(calls).toBeLessThanOrEqual(most.calls)
    expect(spentUsd).toBeLessThanOrEqual(most.usd)
    expect(Math.abs(calls - typical.calls) / typical.calls).toBeLessThan(0.35)
  })
})

describe('failures', () => {
  test('temporary failures are retried, and all arms see the same outcome', async () => {
    const { run, port } = worldOf({ seed: 15, items: 16 })
    const failedOnce = new Set<string>()
    port.trouble = ({ id }, { role }) => {
      const what = `${id} ${role}`
      if (failedOnce.has(what)) return undefined
      failedOnce.add(what)
      return new UpstreamError('rate_limited', { retryAfterMs: 1 })
    }
    const { questions, stop } = await run()
    expect(stop).toBeUndefined()
    for (const { fusion } of questions) expect(fusion.record.answered).toBe(3)
  })

  test('a member that cannot answer is wrong in every arm and is not asked again', async () => {
    const { run, port, members } = worldOf({ seed: 16, items: 16 })
    port.trouble = ({ id }) => (id === 'm-two' ? new UpstreamError('context_too_long') : undefined)
    const evaluation = await run()
    for (const { fusion, singles } of evaluation.questions) {
      expect(singles[1]?.isRight).toBe(false)
      expect(singles[1]?.hasAnswer).toBe(false)
      expect(fusion.record.answered).toBe(2)
      expect(fusion.record.dropOuts).toEqual([{ member: 'm-two', why: 'context_too_long' }])
    }
    const asked = port.seen.filter(({ member, role }) => member === 'm-two' && role === 'panel')
    expect(new Set(asked.map(({ request }) => request)).size).toBe(asked.length)
    expect(buildReport(evaluation, members)?.degraded['member_lost']).toBe(evaluation.questions.length)
  })

  test('a member that is too slow for fusion is aborted in every arm, and its time counts', async () => {
    const { run, port, questions: asked } = worldOf({ seed: 19, items: 8 })
    const slow = asked.slice(2, 4)
    const isSlow = (call: SubCall): boolean => slow.some(({ text }) => textOf(call.conversation).includes(text))
    port.trouble = ({ id }, call) => (id === 'm-one' && isSlow(call) ? new UpstreamError('timeout') : undefined)
    const { questions: all } = await run()
    const questions = all.filter(({ question }) => slow.some(({ number }) => number === question.number))
    expect(questions.length).toBe(2)
    for (const { fusion, singles } of questions) {
      expect(fusion.record.dropOuts).toEqual([{ member: 'm-one', why: 'timeout' }])
      expect(singles[0]).toMatchObject({ isRight: false, usd: 0 })
    }
    expect(port.seen.filter(({ member, role }) => member === 'm-one' && role === 'panel')).toHaveLength(all.length)
  })

  test.each(['unreachable', 'server_error', 'timeout', 'rejected_content', 'not_found'] as const)(
    'a member that never answers (%s) ends it after a few calls and is not measured',
    async (outcome) => {
      const { run, port } = worldOf({ seed: 20, items: 60 })
      port.trouble = ({ id }) => (id === 'm-two' ? new UpstreamError(outcome, { retryAfterMs: 1 }) : undefined)
      const { stop } = await run()
      expect(stop).toMatchObject({ reason: 'unanswered', member: 'm-two', outcome })
      // Three failures in a row with their retries, and what was under way beside them.
      expect(port.seen.filter(({ member }) => member === 'm-two').length).toBeLessThanOrEqual(28)
    },
  )

  test('a member that fails occasionally is measured', async () => {
    const { run, port } = worldOf({ seed: 21, items: 16 })
    let calls = 0
    port.trouble = ({ id }, { role }) =>
      id === 'm-two' && role === 'panel' && ++calls % 3 === 0 ? new UpstreamError('timeout') : undefined
    expect((await run()).stop).toBeUndefined()
  })

  test('no more calls are made than were announced', async () => {
    const { run, port } = worldOf({ seed: 22, items: 60 })
    const { stop } = await run({ maxCalls: 50 })
    expect(stop).toMatchObject({ reason: 'calls' })
    expect(port.seen.length).toBeLessThanOrEqual(50)
  })

  test('a rejected credential ends the evaluation and names the member', async () => {
    const { run, port } = worldOf({ seed: 17, items: 24 })
    port.trouble = ({ id }) => (id === 'm-three' ? new UpstreamError('rejected_credentials') : undefined)
    const { stop, questions } = await run()
    expect(stop).toMatchObject({ reason: 'credentials', member: 'm-three' })
    expect(questions).toEqual([])
    expect(port.seen.length).toBeLessThan(24)
  })

  test('a bug is thrown instead of measured', async () => {
    const { run, port } = worldOf({ seed: 18, items: 8 })
    port.trouble = (_, { role }) => {
      if (role === 'judge') throw new RangeError('a bug')
      return undefined
    }
    await expect(run()).rejects.toThrow('a bug')
  })
})

describe('continuing an evaluation', () => {
  test('an interrupted evaluation ends with the same results, and no answered call is repeated', async () => {
    const whole = worldOf({ seed: 21, items: 24 })
    const expected = await whole.run()
    const { port, run, members } = worldOf({ seed: 21, items: 24 })
    const ending = new AbortController()
    const first = await run({ signal: ending.signal, onProgress: (done) => done === 5 && ending.abort() })
    expect(first.stop?.reason).toBe('asked')
    const answered = new Set(port.kept.answered.keys())
    const asked = port.seen.length
    const best = port.best === undefined ? {} : { best: port.best }
    const second = await run({ kept: { ...port.kept, answered: new Map(port.kept.answered), ...best } })
    expect(second.stop).toBeUndefined()
    expect(port.seen.length - asked).toBe(whole.port.seen.length - answered.size)
    const figures = (evaluation: typeof expected): unknown =>
      buildReport(evaluation, members)?.arms.map(({ name, right, usd }) => ({ name, right, usd }))
    expect(figures(second)).toEqual(figures(expected))
  })

  test('a file contains the answers, their costs, and the worst case of interrupted calls', () => {
    const lines: string[] = [writeHead({ seed: 1, items: 8, preset: 'fast', members: [{ id: 'a', model: 'b' }] })]
    const journal = journalOf((line) => void lines.push(line))
    journal.began('k.0', 0.5)
    journal.answered({ key: 'k.0', events: [{ type: 'text', text: 'x' }], ms: 3, usd: 0.1 })
    journal.began('k.1', 0.5)
    journal.failed('k.1', 0)
    journal.began('k.2', 0.25)
    journal.choseBest('a')
    const read = readJournal(`${lines.join('\n')}\n{"answered":"k.3","events":[{"ty`)
    if ('problem' in read) throw new Error(read.problem)
    expect(read.head).toEqual({ seed: 1, items: 8, preset: 'fast', members: [{ id: 'a', model: 'b' }] })
    expect(read.kept.spentUsd).toBeCloseTo(0.35, 12)
    expect(read.kept.best).toBe('a')
    expect([...read.kept.answered.values()]).toEqual([
      { key: 'k.0', events: [{ type: 'text', text: 'x' }], ms: 3, usd: 0.1 },
    ])
  })

  test.each([
    ['', 'not an evaluation file'],
    ['{"a":1}', 'not an evaluation file'],
    ['{"svcRouterEval":1,"questionSet":0}', 'another version'],
  ])('an invalid file is rejected: %j', (text, problem) => {
    expect(readJournal(text)).toEqual({ problem: expect.stringContaining(problem) as string })
  })
})

describe('the report', () => {
  test('reports how often judges obey a candidate that gives orders', async () => {
    const obeyed = async (obeys: number): Promise<number | undefined> => {
      const { run, members } = worldOf({ seed: 31, items: 96, assumptions: { ...assumed, obeys, tells: 1 } })
      return buildReport(await run(), members)?.injected.obeyed
    }
    expect(await obeyed(0)).toBe(0)
    expect(await obeyed(1)).toBeGreaterThanOrEqual(7)
  })

  test('of simulated models says so at its start and end, and contains every promised figure', async () => {
    const { run, members } = worldOf({ seed: 33, items: 48 })
    const report = buildReport(await run(), members)!
    const text = writeReport(report, asLines)
    expect(text.split('\n')[0]).toContain('SIMULATED')
    expect(text.split('\n').at(-1)).toContain('says nothing about real models')
    for (const word of ['β', 'HEADROOM', 'McNemar', 'P95', 'adopted', 'Degraded', 'Placebo', 'independent members'])
      expect(text).toContain(word)
    for (const family of familyIds.filter((one) => one !== 'injected')) expect(text).toContain(family)
    const real = writeReport({ ...report, simulated: false }, asLines)
    expect(real).not.toContain('SIMULATED')
  })

  test('says "better" only if the interval excludes zero', async () => {
    for (let seed = 100; seed < 112; seed++) {
      const { run, members } = worldOf({ seed, items: 40 })
      const report = buildReport(await run(), members)!
      for (const { verdict, interval, gain } of report.comparisons) {
        if (verdict === 'better') expect(interval.low).toBeGreaterThan(0)
        if (verdict === 'worse') expect(interval.high).toBeLessThan(0)
        expect(interval.low).toBeLessThanOrEqual(gain)
        expect(interval.high).toBeGreaterThanOrEqual(gain)
      }
      const shown = report.comparisons.filter(({ verdict }) => verdict === 'better').length
      expect(writeReport(report, asLines).match(/fusion is better/g)?.length ?? 0).toBe(shown)
    }
  })

  test('is absent if no question was answered by every arm', async () => {
    const { run, members } = worldOf({ seed: 1, items: 8 })
    expect(buildReport(await run({ maxUsd: 0 }), members)).toBeUndefined()
  })
})
