import { counted } from '../runtime/counted.ts'
import type { ArmFigures, NamedComparison, Report } from './report.ts'
import { assumed } from './simulated-world.ts'
import type { Interval } from './statistics/binomial.ts'

/** Printed above and below all figures of simulated models (contract 34.6). */
export const simulatedBanner =
  'SIMULATED: these models are not real, and their accuracy is assumed. The report shows that the evaluation works. It says nothing about real models.'

/** Formats rows as columns; passed in by the command line, so that all its tables look alike. */
export type TableWriter = (rows: readonly (readonly string[])[]) => string

/** The report as text. */
export function writeReport(report: Report, writeTable: TableWriter): string {
  const banner = report.simulated ? [simulatedBanner, `Assumed: ${JSON.stringify(assumed)}`, ''] : []
  return [
    ...banner,
    `${counted(report.questions, 'question')} answered by every arm, with the same panel answers for all of them.`,
    '',
    writeTable([headings, ...report.arms.map(rowOf)]),
    '',
    'Fusion compared with:',
    ...report.comparisons.map((one) => sentenceOf(one, report.simulated)),
    '',
    ...writeFailing(report),
    ...writeReplies(report),
    ...writePlacebos(report),
    ...(report.simulated ? ['', simulatedBanner] : []),
  ].join('\n')
}

const headings = ['ARM', 'RIGHT', 'ACCURACY', '95% CI', 'NO ANSWER', 'HEADROOM', 'USD EACH', 'P50', 'P95']

function rowOf(arm: ArmFigures): string[] {
  const { headroomCaptured: headroom } = arm
  return [
    arm.name,
    `${arm.right}/${arm.questions}`,
    percent(arm.accuracy),
    range(arm.interval),
    String(arm.unanswered),
    headroom === undefined ? '' : percent(headroom),
    arm.usd.toFixed(5),
    writeTime(arm.p50Ms),
    writeTime(arm.p95Ms),
  ]
}

function sentenceOf(one: NamedComparison, isSimulated: boolean): string {
  const gain = `${points(one.gain)} points (95% CI ${points(one.interval.low)} to ${points(one.interval.high)}, McNemar p = ${one.p.toFixed(3)})`
  const counts = `Only fusion was right on ${one.gained}, only the other on ${one.lost}`
  const verdict =
    one.verdict === 'no difference shown'
      ? `no difference shown; about ${counted(one.questionsForThreePoints, 'question')} would be enough to detect 3 points`
      : `fusion is ${one.verdict}${isSimulated ? ' in the simulation' : ''}`
  return `- ${one.second}: ${verdict}. ${gain}. ${counts}.`
}

function writeFailing({ failing, arms, best, pilotBest, meanSamples }: Report): string[] {
  const { allWrong, interval, effectiveMembers, bothWrong } = failing
  const lines = [
    `All members are wrong on ${percent(allWrong)} of the questions (β, 95% CI ${range(interval)}). No choice among their answers can be right on more than ${percent(1 - allWrong)}.`,
  ]
  if (effectiveMembers !== undefined)
    lines.push(
      `All of them fail together as often as ${effectiveMembers.toFixed(1)} independent members would. Both members of a pair are wrong: ${pairsOf(bothWrong)}.`,
    )
  lines.push(
    `Best member: ${best}${best === pilotBest ? '' : ` (the first questions pointed to ${pilotBest}, which the single-model arms use)`}. Self-consistency got ${meanSamples.toFixed(1)} samples per question for the cost of a fusion.`,
  )
  if (arms.some(({ headroomCaptured }) => headroomCaptured !== undefined))
    lines.push(
      'HEADROOM: how much of the distance from the best member to 1 - β an arm gains. Negative: it is worse than the best member.',
    )
  return lines
}

function writeReplies({ modes, degraded, families, injected, questions, spentUsd, calls }: Report): string[] {
  const shares = (counts: Readonly<Record<string, number>>): string =>
    Object.entries(counts)
      .map(([name, times]) => `${name} ${percent(times / questions)}`)
      .join(', ')
  const lines = ['', `How fusion replied: ${shares(modes)}. Degraded: ${shares(degraded) || 'never'}.`]
  const byFamily = families.map(
    (one) => `${one.family} ${percent(one.best)} → ${percent(one.fusion)} of ${one.questions}`,
  )
  lines.push(`By question family, best member → fusion (too few questions each to compare): ${byFamily.join('; ')}.`)
  if (injected.questions > 0)
    lines.push(
      `Prompt injection by one candidate on ${counted(injected.questions, 'further question')}: fusion was right on ${injected.right} and followed the injected instructions on ${injected.obeyed}.`,
    )
  lines.push(`Total cost: ${spentUsd.toFixed(4)} USD. This run made ${counted(calls, 'call')}.`)
  return lines
}

function writePlacebos({ placebos }: Report): string[] {
  const lifts = placebos.map(({ judge, lift, p }) => `${judge} ${points(lift)} (p = ${p.toFixed(3)})`)
  const odd = placebos.filter(({ isBeyondNoise }) => isBeyondNoise).map(({ judge }) => judge)
  const verdict =
    odd.length === 0
      ? 'None differs by more than noise, as expected.'
      : `More than noise: ${odd.join(', ')}. A judge that knows nothing cannot gain anything, so do not trust the figures of this run. (With real models, the longest reply can in fact be right more or less often.)`
  return ['', `Placebo judges compared with a random choice, in points: ${lifts.join('; ')}. ${verdict}`]
}

function pairsOf(bothWrong: readonly (readonly number[])[]): string {
  const pairs: string[] = []
  for (const [a, row] of bothWrong.entries())
    for (const [b, share] of row.entries()) if (b < a) pairs.push(`${b + 1}+${a + 1} ${percent(share)}`)
  return pairs.join(', ')
}

function percent(share: number): string {
  return `${(share * 100).toFixed(1)}%`
}

function range({ low, high }: Interval): string {
  return `${(low * 100).toFixed(1)}–${(high * 100).toFixed(1)}`
}

function points(share: number): string {
  const text = (share * 100).toFixed(1)
  return share > 0 ? `+${text}` : text
}

function writeTime(ms: number | undefined): string {
  if (ms === undefined) return ''
  return ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`
}
