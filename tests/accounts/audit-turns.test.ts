import { expect, test } from 'vitest'
import { AuditReviewer } from '../../src/accounts/audit/audit-reviewer.ts'
import { verifyAudit } from '../../src/accounts/audit/audit.ts'
import type { AuditStore, StoredLink } from '../../src/accounts/ports.ts'
import { chainHash } from '../../src/domain/audit-chain.ts'
import { accountOf, writeEntry, type AuditRecord } from '../../src/domain/audit.ts'
import { systemClock } from '../../src/runtime/clock.ts'
import { madeUpKeys } from '../domain/audit-log.ts'

/** A log with this number of entries, in a store that answers synchronously, like SQLite. */
function logOf(entries: number): AuditStore {
  const links: StoredLink[] = []
  const record: AuditRecord = { actor: { kind: 'cli' }, atMs: 1, event: { type: 'managed.switched_on' } }
  for (let sequence = 1; sequence <= entries; sequence++) {
    const entry = writeEntry({ sequence, ...record })
    const hash = chainHash(links.at(-1)?.hash ?? '', entry)
    links.push({ sequence, accountId: accountOf(record.event), entry, hash })
  }
  return {
    listCheckpoints: () => Promise.resolve([]),
    auditHead: () => Promise.resolve({ sequence: entries, hash: links.at(-1)!.hash }),
    readAudit: (after: number, limit: number) => Promise.resolve(links.slice(after, after + limit)),
  } as unknown as AuditStore
}

/** The number of event loop turns during `work`. */
async function turnsOf(work: () => Promise<unknown>): Promise<number> {
  let turns = 0
  let isOver = false
  const count = (): void => {
    turns++
    if (!isOver) setImmediate(count)
  }
  setImmediate(count)
  await work()
  isOver = true
  return turns
}

test('the verification of a long log yields to the event loop, so that other requests are served meanwhile', async () => {
  const store = logOf(20_000)
  const keys = madeUpKeys()
  expect(await turnsOf(() => verifyAudit(store, { keys }))).toBeGreaterThanOrEqual(20_000 / 500)
})

test('the export of a long log yields to the event loop, too, in pieces of many lines', async () => {
  const reviewer = new AuditReviewer({
    store: logOf(20_000),
    keys: madeUpKeys(),
    memory: { read: () => Promise.resolve(undefined), keep: () => Promise.resolve() },
    clock: systemClock(),
    onFailed: () => undefined,
  })
  const pieces: string[] = []
  const turns = await turnsOf(async () => {
    for await (const piece of reviewer.lines()) pieces.push(piece)
  })
  expect(turns).toBeGreaterThanOrEqual(20_000 / 500)
  expect(pieces.join('').trimEnd().split('\n').length).toBe(20_000)
  expect(Math.max(...pieces.map((piece) => piece.length))).toBeLessThan(70_000)
})
