import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { periodAt } from '../../../src/domain/account-meter.ts'
import { systemClock } from '../../../src/runtime/clock.ts'
import { openSqliteLedger } from '../../../src/storage/ledger/ledger-sqlite.ts'
import { openSqlite } from '../../../src/storage/sqlite/open-sqlite.ts'

const cycles = 6
const startTimeoutMs = 15_000
const minDelivered = 20
const plan = { id: 'test', name: 'Test', requestsPerMinute: 1e6, requestsPerMonth: 1e6, premium: false }

/** Runs the child on the folder and kills it after some deliveries; returns the IDs of what it delivered. */
async function runAndKill(folder: string, log: string, afterMs: number): Promise<string[]> {
  const child = spawn(process.execPath, [join(import.meta.dirname, 'ledger-child.ts'), folder, log], {
    stdio: 'inherit',
  })
  const exited = once(child, 'exit')
  try {
    const giveUpAtMs = performance.now() + startTimeoutMs
    // Wait for a minimum of work, so that a slow machine has as much to recover.
    while (!existsSync(log) || readDelivered(log).length <= minDelivered) {
      expect(performance.now(), 'the child works in time').toBeLessThan(giveUpAtMs)
      await sleep(5)
    }
    await sleep(afterMs)
  } finally {
    child.kill('SIGKILL')
    await exited
  }
  return readDelivered(log)
}

/** All complete lines after the first, which reports the start. */
function readDelivered(log: string): string[] {
  return readFileSync(log, 'utf8').split('\n').slice(1, -1)
}

test('after kill -9, everything delivered is counted, nothing undelivered is counted, and the counters continue', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'svc-router-kill-'))
  const db = await openSqlite(folder)
  const delivered = new Set<string>()
  try {
    for (let cycle = 1; cycle <= cycles; cycle++) {
      const startedAtMs = Date.now()
      const ids = await runAndKill(folder, join(folder, `delivered-${cycle}`), 40 + ((cycle * 37) % 200))
      expect(ids.length).toBeGreaterThan(minDelivered)
      for (const id of ids) delivered.add(id)

      const clock = systemClock()
      const ledger = await openSqliteLedger(folder, clock)
      const rows = await db.selectFrom('requests').selectAll().execute()
      const charged = new Set(rows.filter((row) => row.charged > 0).map(({ id }) => id))
      expect(
        [...delivered].filter((id) => !charged.has(id)),
        'delivered and not counted',
      ).toEqual([])
      // The process can die between writing a mark and sending the first byte, but at most once per cycle.
      const extra = rows.filter((row) => row.charged > 0 && row.profile !== 'disconnected' && !delivered.has(row.id))
      expect(extra.length, 'counted and not delivered').toBeLessThanOrEqual(cycle)
      expect(rows.filter((row) => !['done', 'lost'].includes(row.state) || row.due_mark !== null)).toEqual([])
      expect(rows.filter((row) => row.profile === 'failed' && row.charged > 0)).toEqual([])

      for (const accountId of ['acc_0', 'acc_1', 'acc_2']) {
        const own = rows.filter((row) => row.account_id === accountId)
        const used = own.reduce((sum, row) => sum + row.charged, 0)
        const signals = await ledger.signals(accountId, plan)
        if (periodAt(startedAtMs).id === periodAt(clock.nowMs()).id) expect(signals.quotaUsed).toBe(used)
        const inMinute = own.filter((row) => row.admitted_at_ms > clock.nowMs() - 60_000).length
        expect(signals.rateRemaining).toBeLessThanOrEqual(plan.requestsPerMinute - inMinute)
      }
      await ledger.close()
    }
  } finally {
    await db.destroy()
    rmSync(folder, { recursive: true })
  }
}, 120_000)
