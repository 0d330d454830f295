import { counted } from '../runtime/counted.ts'
import type { ArmFigures, NamedComparison, Report } from './report.ts'
import { assumed } from './simulated-world.ts'
import type { Interval } from './statistics/binomial.ts'

/** Printed above and below all figures of simulated models. */
export const simulatedBanner =
  'SIMULATED: these models pretend. How often they are right is assumed, and so is all below: it shows that the machinery works and says nothing about real models.'

/** Formats rows as columns; passed in by the command line, so that all its tables look alike. */
export type TableWriter = (rows: readonly (readonly string[])[]) => string

/** The report as text. */
export function writeReport(report: Report, writeTable: TableWriter): string {
  const banner = report.simulated ? [simulatedBanner, `Assumed: ${JSON.stringify(assumed)}`, ''] : []
  return [
    ...banner,
    `${counted(report.questions, 'question')}, each answered by every arm, all on the same answers of the panel.`,
    '',
    writeTable([headings, ...report.arms.map(rowOf)]),
    '',
    'Fusion against:',
    ...report.comparisons.map((one) => sentenceOf(one, report.simulated)),
    '',
    ...writeFailing(report),
    ...writeCourse(report),
    ...writePlacebos(report),
    ...(report.simulated ? ['', simulatedBanner] : []),
  ].join('\n')
}

const headings = ['ARM', 'RIGHT', 'ACCURACY', '95 %', 'NO ANSWER', 'HEADROOM', 'USD EACH', 'P50', 'P95']

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
  const gain = `${points(one.gain)} points, 95 % ${points(one.interval.low)} to ${points(one.interval.high)}, McNemar p = ${one.p.toFixed(3)}`
  const counts = `only fusion right ${one.gained}, only the other ${one.lost}`
  const verdict =
    one.verdict === 'no difference shown'
      ? `no difference shown; about ${counted(one.questionsForThreePoints, 'question')} would show 3 points`
      : `fusion is ${one.verdict}${isSimulated ? ' in the simulation' : ''}`
  return `- ${one.second}: ${verdict}. ${gain}; ${counts}.`
}

function writeFailing({ failing, arms, best, pilotBest, meanSamples }: Report): string[] {
  const { allWrong, interval, effectiveMembers, bothWrong } = failing
  const lines = [
    `All members wrong (β): ${percent(allWrong)}, 95 % ${range(interval)}. No choice among their answers is right more often than ${percent(1 - allWrong)}.`,
  ]
  if (effectiveMembers !== undefined)
    lines.push(
      `They fail together like ${effectiveMembers.toFixed(1)} independent members; both of two wrong: ${pairsOf(bothWrong)}.`,
    )
  lines.push(
    `Best member: ${best}${best === pilotBest ? '' : ` (the first questions said ${pilotBest}, which the arms of one model use)`}. Self-consistency had ${meanSamples.toFixed(1)} samples for the fusion's money.`,
  )
  if (arms.some(({ headroomCaptured }) => headroomCaptured !== undefined))
    lines.push('HEADROOM: the part of what lies between the best member and 1 - β; below zero it lost.')
  return lines
}

function writeCourse({ modes, degraded, families, injected, questions, spentUsd, calls }: Report): string[] {
  const shares = (counts: Readonly<Record<string, number>>): string =>
    Object.entries(counts)
      .map(([name, times]) => `${name} ${percent(times / questions)}`)
      .join(', ')
  const lines = ['', `How fusion replied: ${shares(modes)}. Degraded: ${shares(degraded) || 'never'}.`]
  const byFamily = families.map(
    (one) => `${one.family} ${percent(one.best)} → ${percent(one.fusion)} of ${one.questions}`,
  )
  lines.push(`By family, best member → fusion (too few each to compare): ${byFamily.join('; ')}.`)
  if (injected.questions > 0)
    lines.push(
      `One candidate gave orders on ${counted(injected.questions, 'further question')}: ${injected.right} right, ${injected.obeyed} as ordered.`,
    )
  lines.push(`Spent in all: ${spentUsd.toFixed(4)} USD; ${counted(calls, 'call')} in this run.`)
  return lines
}

function writePlacebos({ placebos }: Report): string[] {
  const lifts = placebos.map(({ judge, lift, p }) => `${judge} ${points(lift)} (p = ${p.toFixed(3)})`)
  const odd = placebos.filter(({ isBeyondNoise }) => isBeyondNoise).map(({ judge }) => judge)
  const verdict =
    odd.length === 0
      ? 'None is beyond noise, as it has to be.'
      : `Beyond noise: ${odd.join(', ')}. A judge that knows nothing gains nothing: do not trust this run's figures (that the longest reply is right more often, or less often, can be true of real models).`
  return ['', `Placebo judges against choosing by lot, in points: ${lifts.join('; ')}. ${verdict}`]
}

function pairsOf(bothWrong: readonly (readonly number[])[]): string {
  const pairs: string[] = []
  for (const [a, row] of bothWrong.entries())
    for (const [b, share] of row.entries()) if (b < a) pairs.push(`${b + 1}+${a + 1} ${percent(share)}`)
  return pairs.join(', ')
}

function percent(share: number): string {
  return `${(share * 100).toFixed(1)} %`
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
