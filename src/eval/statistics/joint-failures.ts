import { clopperPearson, type Interval } from './binomial.ts'

/** How members of a panel fail together, which no choice among their answers can fix (contract 34.9). */
export interface JointFailures {
  /** The share of questions on which all are wrong (β). */
  readonly allWrong: number
  readonly interval: Interval
  /** The number of independent members that would fail together as often on average; absent for a single member. */
  readonly effectiveMembers?: number
  /** For each pair of members, by index, the share of questions on which both are wrong. */
  readonly bothWrong: readonly (readonly number[])[]
}

/** `right[m][q]`: whether member m is right on question q. */
export function measureJointFailures(right: readonly (readonly boolean[])[]): JointFailures {
  const questions = right[0]?.length ?? 0
  const wrongAll = Array.from({ length: questions }, (_, q) => right.every((member) => !member[q]))
  const hits = wrongAll.filter(Boolean).length
  const both = right.map((a) => right.map((b) => shareOf(questions, (q) => !a[q] && !b[q])))
  const effective = effectiveMembers(both)
  return {
    allWrong: questions === 0 ? 0 : hits / questions,
    interval: clopperPearson(hits, questions),
    bothWrong: both,
    ...(effective === undefined ? {} : { effectiveMembers: effective }),
  }
}

/**
 * n / (1 + (n - 1) r), where r is the mean correlation of the members' errors. A member that is always or never wrong
 * correlates with none.
 */
function effectiveMembers(both: readonly (readonly number[])[]): number | undefined {
  const count = both.length
  if (count < 2) return undefined
  let sum = 0
  for (let a = 0; a < count; a++)
    for (let b = 0; b < a; b++) {
      const [wrongA, wrongB] = [both[a]![a]!, both[b]![b]!]
      const spread = Math.sqrt(wrongA * (1 - wrongA) * wrongB * (1 - wrongB))
      sum += spread === 0 ? 0 : (both[a]![b]! - wrongA * wrongB) / spread
    }
  const correlation = Math.max(0, sum / ((count * (count - 1)) / 2))
  return count / (1 + (count - 1) * correlation)
}

function shareOf(questions: number, holds: (question: number) => boolean): number {
  let hits = 0
  for (let question = 0; question < questions; question++) if (holds(question)) hits += 1
  return questions === 0 ? 0 : hits / questions
}
