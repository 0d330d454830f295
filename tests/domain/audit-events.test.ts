import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { auditEvents } from '../../src/domain/audit.ts'

test('the page for operators lists exactly the existing audit events', () => {
  const page = readFileSync(new URL('../../docs/operators.md', import.meta.url), 'utf8')
  const rows = page.split('\n').filter((line) => line.startsWith('| `'))
  const named = rows.flatMap((row) => Array.from(row.split('|')[1]!.matchAll(/`([a-z_.]+)`/g), (match) => match[1]!))
  expect(new Set(named)).toEqual(new Set(Object.keys(auditEvents)))
})
