import type { CallRole } from '../../domain/fusion-record.ts'
import { seededRandom } from '../../gateway/fusion/engine/seeded-random.ts'
import { readCandidates, textOf, writeJudgement, type QuotedCandidate } from '../quoted-candidates.ts'
import type { Interception } from '../recorder.ts'

/** Judges that know nothing and cost no call. If they appear to gain, the measurement is wrong. */
export const placeboIds = ['random', 'first', 'longest'] as const
export type PlaceboId = (typeof placeboIds)[number]

const choose: Readonly<Record<PlaceboId, (shown: readonly QuotedCandidate[], random: () => number) => number>> = {
  random: (shown, random) => Math.floor(random() * shown.length),
  first: () => 0,
  longest: (shown) => {
    const longest = Math.max(...shown.map(({ text }) => text.length))
    return shown.findIndex(({ text }) => text.length === longest)
  },
}

const judging: ReadonlySet<CallRole> = new Set(['judge', 'repair', 'swap'])

/** Whether a call is for a judge. */
export function isJudging(role: CallRole): boolean {
  return judging.has(role)
}

/** A placebo instead of the judge; the same seed gives the same replies. */
export function placeboJudge(id: PlaceboId, seed: number): Interception {
  const random = seededRandom(seed)
  return (_member, { role, conversation }) => {
    if (!isJudging(role)) return undefined
    const shown = readCandidates(textOf(conversation))
    const text = writeJudgement(shown, choose[id](shown, random))
    return [
      { type: 'text', text },
      { type: 'finish', reason: 'stop' },
    ]
  }
}
