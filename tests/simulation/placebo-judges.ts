import type { Run, SimulatedJudge } from './closed-fusions.ts'
import { meanWithInterval } from './statistics.ts'

const best = 9
const rest = 3

/** Judges that look at everything except correctness. */
export const placebos: Readonly<Record<string, SimulatedJudge>> = {
  'always the first that it is shown': (shown) => shown.map((_, place) => (place === 0 ? best : rest)),
  'always the last that it is shown': (shown) => shown.map((_, place) => (place === shown.length - 1 ? best : rest)),
  'always the letter B': (shown) => shown.map(({ label }) => (label === 'B' ? best : rest)),
  'at random': (shown, { random }) => {
    const chosen = Math.floor(random() * shown.length)
    return shown.map((_, place) => (place === chosen ? best : rest))
  },
  'the longest': (shown) => {
    const longest = Math.max(...shown.map(({ text }) => text.length))
    const chosen = shown.findIndex(({ text }) => text.length === longest)
    return shown.map((_, place) => (place === chosen ? best : rest))
  },
}

/** The gain of the judge's choice over a random choice among the same answers, per run. */
export function liftOf(all: readonly Run[]): { readonly mean: number; readonly half: number } {
  return meanWithInterval(
    all.map(({ right, chosen }) => Number(right[chosen]) - right.filter(Boolean).length / right.length),
  )
}
