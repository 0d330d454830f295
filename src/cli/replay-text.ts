import type {
  Interval,
  LeftOutReason,
  ReplayFigure,
  ReplayFigureName,
  ReplayReport,
  UnseenReason,
} from '../domain/replay.ts'
import { counted } from '../runtime/counted.ts'
import { terminalLine } from '../runtime/safe-text.ts'
import { writeTable, writeTime } from './terminal/table.ts'

const figureTexts: Readonly<Record<ReplayFigureName, string>> = {
  cost_usd: 'USD per 1,000 requests',
  failed: 'failed requests',
  first_content_p50_ms: 'first content, median',
  first_content_p95_ms: 'first content, p95',
  calls: 'calls per request',
}

const leftOutTexts: Readonly<Record<LeftOutReason, string>> = {
  unfinished: 'unfinished',
  fusion: 'answered by fusion',
  rejected: 'rejected for content',
  canceled: 'canceled by the client',
  own_routing: 'with routing preferences in the request',
  without_kind: 'without a recorded kind of request (earlier versions)',
}

const unseenTexts: Readonly<Record<UnseenReason, string>> = {
  never: 'has no record for this kind of request',
  only_after_failures: 'was called only after another backend had failed, because of its place in the order',
  not_then: 'was not called within two minutes of these requests',
  rarely: 'has too few records: each would represent more than 20 calls',
}

/** The figures as a table; nothing if the records do not tell. */
export function writeReplay({ canTell, figures, shares }: ReplayReport): string {
  if (!canTell) return ''
  const rows = figures.map((figure) => {
    const write = (value: number | null): string => (value === null ? 'unknown' : writeValue(figure.name, value))
    return [
      figureTexts[figure.name],
      write(figure.recorded),
      write(figure.configured),
      write(figure.policy),
      writeChange(figure),
    ]
  })
  const shareRows = shares.map(({ backend, recorded, configured, policy }) => [
    `answered by ${backend}`,
    ...[recorded, configured, policy].map(writePercent),
    '',
  ])
  const heading = ['', 'RECORDED', 'CONFIGURED', 'POLICY', 'CHANGE, 95% INTERVAL']
  return writeTable([heading, ...rows, ...shareRows])
}

/** What the figures are based on, and why some or all of them are unknown. */
export function describeReplay(report: ReplayReport, assumesCapacity: boolean): readonly string[] {
  return linesOf(report, assumesCapacity).map(terminalLine)
}

function linesOf(report: ReplayReport, assumesCapacity: boolean): readonly string[] {
  const { profile, requests, records, fromMs, untilMs, leftOut, canTell } = report
  const span = requests === 0 ? '' : `, from ${writeTime(fromMs)} to ${writeTime(untilMs)}`
  const lines = [`${counted(requests, 'request')} of ${profile} replayed${span}. Records read: ${records}.`]
  const left = Object.entries(leftOut).map(([reason, count]) => `${count} ${leftOutTexts[reason as LeftOutReason]}`)
  if (left.length > 0) lines.push(`Left out: ${left.join('; ')}.`)
  if (!canTell) return [...lines, ...whyUnknown(report)]
  if (report.unseenShare > 0)
    lines.push(`${writePercent(report.unseenShare)} of the requests have unknown results and are not in the figures.`)
  for (const { backend, openCalls, recordedOpenCalls } of report.loads) {
    const load = `${backend} would have up to ${openCalls} open calls; the records show at most ${recordedOpenCalls}.`
    lines.push(
      assumesCapacity
        ? `${load} The figures assume that it stays as fast.`
        : `${load} The records do not show how fast it is then. If you know that it stays as fast, add --assume-capacity.`,
    )
  }
  if (report.unpriced.length > 0)
    lines.push(`The cost is unknown, because there is no price for ${report.unpriced.join(', ')}. Set usd_per_million.`)
  if (report.recordedOtherwise)
    lines.push(
      'RECORDED differs a lot from CONFIGURED: the settings or the load were probably different at the time of the records.',
    )
  lines.push('CHANGE compares POLICY with CONFIGURED, both replayed. An interval that contains 0 shows no difference.')
  return lines
}

function whyUnknown({ tooLittle, unseen, unseenShare }: ReplayReport): readonly string[] {
  if (tooLittle !== undefined)
    return [
      `There are too few records: at least ${tooLittle.leastRequests} requests over ${tooLittle.leastMs / 60_000} minutes are needed.`,
    ]
  return [
    `The records do not show what would have changed: ${writePercent(unseenShare)} of the requests would have made calls with unknown results.`,
    ...unseen.map(
      ({ backend, why, requests }) => `  ${backend} ${unseenTexts[why]}: about ${Math.ceil(requests)} calls.`,
    ),
    'Give these backends a share of the requests for some time, for example with "sort: balanced", and replay again.',
  ]
}

function writeChange({ name, change }: ReplayFigure): string {
  if (change === null) return 'unknown'
  const { estimate, low, high }: Interval = change
  const [first, least, most] = [estimate, low, high].map((value) => signed(writeValue(name, value), value))
  return `${first} (${least} to ${most})`
}

function signed(text: string, value: number): string {
  return value > 0 ? `+${text}` : text
}

function writeValue(name: ReplayFigureName, value: number): string {
  if (name === 'cost_usd') return (value * 1_000).toFixed(4)
  if (name === 'failed') return writePercent(value)
  return name === 'calls' ? value.toFixed(3) : `${Math.round(value)} ms`
}

function writePercent(share: number): string {
  return `${(share * 100).toFixed(2)}%`
}
