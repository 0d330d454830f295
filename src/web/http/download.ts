/** Characters that start a spreadsheet formula, including their full-width forms. */
const formulaStart = /^[=+\-@\t\r\n＝＋－＠]/

/** A table as CSV (RFC 4180). Cells are escaped so that spreadsheets never read them as formulas. */
export function writeCsv(columns: readonly string[], rows: readonly (readonly (string | number | null)[])[]): string {
  return [columns, ...rows].map((row) => `${row.map(writeCell).join(',')}\r\n`).join('')
}

function writeCell(value: string | number | null): string {
  if (value === null) return ''
  if (typeof value === 'number') return String(value)
  const text = formulaStart.test(value) ? `'${value}` : value
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

const types = { csv: 'text/csv', json: 'application/json', jsonl: 'application/jsonl' } as const

/** A response that browsers save as a file. `name` must not contain user input. */
export function download(name: `${string}.${keyof typeof types}`, body: string | ReadableStream<Uint8Array>): Response {
  const type = types[name.slice(name.lastIndexOf('.') + 1) as keyof typeof types]
  return new Response(body, {
    headers: { 'Content-Type': `${type}; charset=utf-8`, 'Content-Disposition': `attachment; filename="${name}"` },
  })
}
