import type { PresetName } from '../../src/domain/fusion-presets.ts'
import { threeDiverse } from './accuracy-world.ts'
import { judgeOf, type JudgeKnobs } from './assumed-judges.ts'
import { runClosed, type Run } from './closed-fusions.ts'
import { meanWithInterval } from './statistics.ts'

/** The results of fusions with one judge, as shares of 1, with 99 % confidence intervals. */
export interface Headroom {
  readonly best: number
  readonly any: number
  readonly fused: { readonly mean: number; readonly half: number }
  /** The captured share of what the other members knew beyond the best one, and half its interval. */
  readonly captured: number
  readonly capturedHalf: number
  /** How much more often the reply is right than the judge's first choice. */
  readonly overFirstReading: { readonly mean: number; readonly half: number }
  readonly judgings: number
}

export async function measureHeadroom(knobs: JudgeKnobs, questions: number, preset?: PresetName): Promise<Headroom> {
  const all = await runClosed(threeDiverse, judgeOf(knobs), questions, preset)
  const shareOf = (isRight: (run: Run) => boolean | undefined): number =>
    all.filter((run) => isRight(run) === true).length / all.length
  const best = Math.max(...threeDiverse.members.map((_, member) => shareOf(({ right }) => right[member])))
  const any = shareOf(({ right }) => right.includes(true))
  const fused = meanWithInterval(all.map(({ right, chosen }) => Number(right[chosen])))
  const judged = all.filter(({ top }) => top !== undefined)
  return {
    best,
    any,
    fused,
    captured: (fused.mean - best) / (any - best),
    capturedHalf: fused.half / (any - best),
    overFirstReading: meanWithInterval(
      judged.map(({ right, chosen, top }) => Number(right[chosen]) - Number(right[top!])),
    ),
    judgings: all.reduce((sum, { judgings }) => sum + judgings, 0) / all.length,
  }
}

/** The results as a text table, with all assumptions. */
export function tableOf(
  rows: ReadonlyMap<string, readonly [JudgeKnobs, Headroom]>,
  questions: number,
  title: string,
): string {
  const percent = (share: number): string => `${(share * 100).toFixed(1)} %`.padStart(7)
  const lines = [
    `SIMULATED, ASSUMED PARAMETERS, ${questions} closed questions, ${title}; says nothing about real models`,
    `world ${JSON.stringify(threeDiverse)}`,
  ]
  for (const [name, [knobs, found]] of rows) {
    const { best, any, fused, captured, capturedHalf, judgings } = found
    lines.push(
      `${name.padEnd(8)} best ${percent(best)}, fused ${percent(fused.mean)} ± ${percent(fused.half)}, any ${percent(any)}: ` +
        `headroom ${percent(captured)} ± ${percent(capturedHalf)}; ${judgings.toFixed(2)} judgings; ${JSON.stringify(knobs)}`,
    )
  }
  return `${lines.join('\n')}\n`
}
