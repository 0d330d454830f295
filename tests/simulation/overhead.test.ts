import { expect, test } from 'vitest'
import { fuse } from '../../src/gateway/fusion/engine/fusion.ts'
import { seededRandom } from '../../src/gateway/fusion/engine/seeded-random.ts'
import { settingsOf } from '../../src/gateway/fusion/engine/settings.ts'
import { question } from './conversations.ts'
import { judgeReply, judgeSays } from './simulated-judge.ts'
import { SimulatedModels, simulatedMember, streamedAnswer, textAnswer, type Behave } from './simulated-models.ts'
import { SimulatedTime } from './simulated-time.ts'
import { quantile } from './statistics.ts'

const warmUps = 40
const runs = 200
const answerBytes = 24_000

/** Prose with numbers and code, about as long as a long answer. */
function longText(seed: number): string {
  const random = seededRandom(seed)
  const words = [
    'the',
    'answer',
    'depends',
    'on',
    'how',
    'many',
    'rows',
    'are',
    'read',
    '`const x = 1`',
    '42',
    'därum',
    '\n',
    '- first',
  ]
  let text = ''
  while (text.length < answerBytes) text += `${words[Math.floor(random() * words.length)]!} `
  return text
}

const texts = [longText(1), longText(2), longText(3)]
const reply = streamedAnswer(texts[0]!.slice(0, 2_000), 1)
const judged = judgeSays(judgeReply({ scores: { A: 8, B: 7, C: 7 } }), 1)

const paths: Readonly<Record<string, { readonly behave: Behave; readonly mode: string }>> = {
  'judged and written': {
    behave: (_, { role }, nth) =>
      role === 'panel' ? textAnswer(texts[nth % 3]!, 1) : role === 'judge' ? judged : reply,
    mode: 'synthesised',
  },
  'without judge and writer, down to the medoid': {
    behave: (_, { role }, nth) =>
      role === 'panel' ? textAnswer(texts[nth % 3]!, 1) : { steps: [{ afterMs: 1, fails: 'reset' }] },
    mode: 'medoid',
  },
}

/** CPU milliseconds of this thread, which exclude the machine's other work. */
function cpuMs(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}

test.each(Object.entries(paths))(
  'the engine itself, for three answers of 24 kB, %s, takes at most 5 ms at p50 and 25 ms at p99',
  async (name, { behave, mode }) => {
    const members = [simulatedMember(), simulatedMember(), simulatedMember()]
    const costs: number[] = []
    for (let run = 0; run < warmUps + runs; run++) {
      const world = new SimulatedModels(new SimulatedTime(), behave, run)
      const request = { conversation: question(), members, settings: { ...settingsOf('balanced', true), panelSize: 3 } }
      const beganMs = cpuMs()
      const outcome = await world.clock.until(fuse(request, world, new AbortController().signal))
      if (run >= warmUps) costs.push(cpuMs() - beganMs)
      expect(outcome.record.mode).toBe(mode)
    }
    const [p50, p99] = [quantile(costs, 0.5), quantile(costs, 0.99)]
    // This includes the simulated upstream and its clock, so the engine itself takes less.
    process.stdout.write(
      `engine overhead, ${name}: p50 ${p50.toFixed(2)} ms, p99 ${p99.toFixed(2)} ms (simulated upstream included)\n`,
    )
    expect(p50).toBeLessThanOrEqual(5)
    expect(p99).toBeLessThanOrEqual(25)
  },
)
