import type { Bench } from './bench.ts'
import type { Machine } from './machine.ts'
import type { Options } from './options.ts'
import type { Row } from './rows.ts'
import { median } from './statistics.ts'

const columns = ['scenario', 'figure', 'gateway', 'median', 'range', '× reference', 'aim', ''] as const
const rightAligned = new Set<string>(['median', 'range', '× reference'])

/** The report as text: the machine, one line for each figure, and everything that was not measured. */
export function writeReport(rows: readonly Row[], bench: Bench, machine: Machine, seconds: number): string {
  return [...writeHead(bench.options, machine), '', ...writeTable(rows), '', ...writeGaps(bench), writeFoot(seconds)]
    .join('\n')
    .trimEnd()
}

function writeHead(options: Options, machine: Machine): string[] {
  const cores = `${machine.cores} ${machine.cores === 1 ? 'core' : 'cores'}`
  const place =
    machine.pinning === undefined
      ? `NOT PINNED (${machine.unpinnedBecause}): gateway, load and upstream disturb each other, take ratios with care`
      : `gateway on core ${machine.pinning.gateway}, load generator and fake upstream on core ${machine.pinning.others}`
  const size = options.quick ? 'quick: a first look, too short for a claim' : 'full'
  return [
    `Node ${machine.node.slice(1)}, ${cores}, ${machine.cpu}`,
    place,
    `${size}; ${options.rounds} interleaved rounds (${options.longRounds} where they are long); CPU is user + system of the gateway, all its threads`,
  ]
}

function writeTable(rows: readonly Row[]): string[] {
  if (rows.length === 0) return ['Nothing was measured.']
  const lines = rows.map((row, index) => writeRow(row, rows[index - 1]))
  const table = [[...columns], ...lines]
  const widths = columns.map((_, column) => Math.max(...table.map((line) => line[column]!.length)))
  return table.map((line) =>
    line
      .map((cell, column) => pad(cell, column, widths))
      .join('  ')
      .trimEnd(),
  )
}

function pad(cell: string, column: number, widths: readonly number[]): string {
  return rightAligned.has(columns[column]!) ? cell.padStart(widths[column]!) : cell.padEnd(widths[column]!)
}

function writeRow(row: Row, previous: Row | undefined): string[] {
  const isSame = previous?.scenario === row.scenario && previous.figure === row.figure
  const range = row.values.length < 2 ? '' : `${number(Math.min(...row.values))}–${number(Math.max(...row.values))}`
  const ratio = row.ratios === undefined ? '' : median(row.ratios).toFixed(2)
  const aim = row.aim === undefined ? '' : `${row.aim.text} ${row.aim.isMet ? 'met' : 'MISSED'}`
  const to = row.ratioTo === undefined || row.ratioTo === 'relay' ? '' : `ratio to ${row.ratioTo}`
  const remark = [to, row.remark ?? ''].filter(Boolean).join('; ')
  const place = isSame ? ['', ''] : [row.scenario, row.figure]
  return [...place, row.gateway, number(median(row.values)), range, ratio, aim, remark]
}

function number(value: number): string {
  const size = Math.abs(value)
  return value.toLocaleString('en-US', { maximumFractionDigits: size >= 100 ? 0 : size >= 10 ? 1 : 2 })
}

function writeGaps(bench: Bench): string[] {
  const absent = [...bench.absent].map(([name, reason]) => `NOT MEASURED: ${name}: ${reason}`)
  const troubles = bench.troubles.map(({ scenario, gateway, reason }) => `FAILED: ${scenario}, ${gateway}: ${reason}`)
  const gaps = [...absent, ...troubles]
  return gaps.length === 0 ? [] : [...gaps, '']
}

function writeFoot(seconds: number): string {
  return `${Math.round(seconds)} s. How to read this: docs/benchmarks.md`
}
