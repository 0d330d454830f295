import { expect, test } from 'vitest'
import { runClosed, type Run, type SimulatedJudge } from './accuracy-world.ts'
import { meanWithInterval } from './statistics.ts'

const runs = 4_000
/** How often the assumed judge tells a right answer from a wrong one where both are there. That is what nobody can know. */
const discriminations = { blind: 0, weak: 0.4, assumed: 0.8 }

function judgeOf(discrimination: number): SimulatedJudge {
  return (shown, random) => {
    const right = shown.flatMap(({ isRight }, place) => (isRight ? [place] : []))
    const knows = random() < discrimination && right.length > 0
    const chosen = knows ? right[Math.floor(random() * right.length)]! : Math.floor(random() * shown.length)
    return shown.map((_, place) => (place === chosen ? 9 : 3))
  }
}

async function runAll(judge: SimulatedJudge): Promise<Run[]> {
  const all: Run[] = []
  for (let seed = 1; seed <= runs; seed++) all.push(await runClosed(seed, judge))
  return all
}

test('simulated, with an assumed judge: at least 75 % of what choosing could win is won, and nothing by a judge that cannot tell', async () => {
  const lines = [
    `SIMULATED, ASSUMED PARAMETERS, ${runs} closed questions, three members; says nothing about real models`,
  ]
  const captured: Record<string, number> = {}
  for (const [name, discrimination] of Object.entries(discriminations)) {
    const all = await runAll(judgeOf(discrimination))
    const of = (isRight: (run: Run) => number): number => meanWithInterval(all.map(isRight)).mean
    const best = Math.max(...[0, 1, 2].map((member) => of(({ right }) => Number(right[member]))))
    const byLot = of(({ right }) => right.filter(Boolean).length / right.length)
    const any = of(({ right }) => Number(right.includes(true)))
    const fused = meanWithInterval(all.map(({ right, adopted }) => Number(right[adopted])))
    captured[name] = (fused.mean - best) / (any - best)
    const percent = (share: number): string => `${(share * 100).toFixed(1)} %`
    lines.push(
      `${name.padEnd(8)} best member ${percent(best)}, by lot ${percent(byLot)}, fused ${percent(fused.mean)} ± ${percent(fused.half)}, ` +
        `any member ${percent(any)}: of the headroom above the best ${percent(captured[name])}`,
    )
  }
  process.stdout.write(`${lines.join('\n')}\n`)
  expect(captured['assumed']).toBeGreaterThanOrEqual(0.75)
  expect(captured['blind']).toBeLessThan(0.05)
  expect(captured['weak']).toBeLessThan(captured['assumed']!)
}, 60_000)
