import { expect, test } from 'vitest'
import { runClosed, type Run, type SimulatedJudge } from './accuracy-world.ts'
import { meanWithInterval } from './statistics.ts'

const runs = 4_000
/** How often an assumed judge tells a right answer from a wrong one where both are there. That is what nobody can know. */
const discriminations = { blind: 0, weak: 0.4, middling: 0.8, good: 0.9 }

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

test('simulated: what a judge can tell arrives in the answer whole, and a judge that cannot tell wins nothing', async () => {
  const lines = [
    `SIMULATED, ASSUMED PARAMETERS, ${runs} closed questions, three members; says nothing about real models`,
  ]
  const captured: number[] = []
  for (const [name, discrimination] of Object.entries(discriminations)) {
    const all = await runAll(judgeOf(discrimination))
    const shareOf = (isRight: (run: Run) => number): number => meanWithInterval(all.map(isRight)).mean
    const best = Math.max(...[0, 1, 2].map((member) => shareOf(({ right }) => Number(right[member]))))
    const byLot = shareOf(({ right }) => right.filter(Boolean).length / right.length)
    const any = shareOf(({ right }) => Number(right.includes(true)))
    const fused = meanWithInterval(all.map(({ right, adopted }) => Number(right[adopted])))
    const headroom = (fused.mean - best) / (any - best)
    captured.push(headroom)
    const percent = (share: number): string => `${(share * 100).toFixed(1)} %`
    lines.push(
      `a judge that tells ${percent(discrimination).padStart(6)} (${name}): best member ${percent(best)}, fused ${percent(fused.mean)} ± ` +
        `${percent(fused.half)}, any member ${percent(any)}; of the headroom above the best ${percent(headroom)}`,
    )
    // The engine itself loses nothing of it: panel, letters, order, totals and adoption are exact.
    const told = discrimination * any + (1 - discrimination) * byLot
    expect(Math.abs(fused.mean - told)).toBeLessThanOrEqual(fused.half)
  }
  process.stdout.write(`${lines.join('\n')}\n`)
  expect(captured[0]).toBeLessThan(0.05)
  expect(captured).toEqual(captured.toSorted((a, b) => a - b))
  expect(captured.at(-1)).toBeGreaterThanOrEqual(0.75)
}, 60_000)
