import { terminalLine } from '../../runtime/safe-text.ts'

/** Formats rows as aligned columns, separated by two spaces. The first row is the heading. */
export function writeTable(cells: readonly (readonly string[])[]): string {
  const rows = cells.map((row) => row.map(terminalLine))
  const widths = rows.reduce<number[]>(
    (widest, row) => row.map((cell, index) => Math.max(widest[index] ?? 0, cell.length)),
    [],
  )
  return rows
    .map((row) =>
      row
        .map((cell, index) => cell.padEnd(widths[index] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}

/** Formats a time in UTC, to the second, for people and scripts. */
export function writeTime(timeMs: number): string {
  return `${new Date(timeMs).toISOString().slice(0, 19)}Z`
}
