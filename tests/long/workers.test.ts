import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { workerEnv } from '../../src/cli/process/workers.ts'
import { startSimulatedProvider } from '../../src/simulation/providers/simulated-provider.ts'
import { isRunning } from '../faults/children-of.ts'
import { ServiceProcess } from '../faults/service-process.ts'
import { hasPostgres } from '../postgres.ts'
import { runCrashCycles } from '../processes/crash-cycles.ts'
import { sharedPostgres } from '../shared-postgres.ts'

const limitMs = 20 * 60_000

test.runIf(existsSync('/proc/self/task')).each([
  ['any of two workers', 'worker', 100],
  ['their owner', 'service', 50],
] as const)(
  'after kill -9 of %s on SQLite under load, every delivered answer is counted and no undelivered one is',
  { timeout: limitMs },
  async (_, victim, cycles) => {
    const report = await runCrashCycles(cycles, { workers: 2, victim })
    console.log(JSON.stringify(report))
    expect(report.deliveredUncounted).toEqual([])
    // A kill between a mark and its first byte, two adjacent system calls.
    expect(report.undeliveredCounted).toEqual(report.diedAtTheMark)
    expect(report.diedAtTheMark.length).toBeLessThanOrEqual(cycles / 25)
    expect(report.unequalTotals).toBe(0)
    expect(report.delivered).toBeGreaterThan(cycles * 10)
    expect(report.cut).toBeGreaterThan(cycles / 4)
  },
)

/** Whether a worker's process has replaced the copy of its parent that it began as. */
function hasBegun(pid: number): boolean {
  return readFileSync(`/proc/${pid}/environ`, 'latin1').includes(workerEnv)
}

/** The time limit of a start, and some more. */
const hangLimitMs = 75_000
const stores = hasPostgres('workers that hang') ? ['SQLite', 'PostgreSQL'] : ['SQLite']

test.runIf(existsSync('/proc/self/task')).each(stores)(
  'a replacement that hangs while it starts is ended and replaced, on %s',
  { timeout: limitMs },
  async (store) => {
    const folder = mkdtempSync(join(tmpdir(), 'svc-router-hung-'))
    const provider = await startSimulatedProvider({ name: 'alpha' })
    const url = store === 'SQLite' ? undefined : await (await sharedPostgres()).createMigratedDatabase()
    const settings = {
      workers: 2,
      backends: { alpha: { provider: 'alpha', model: 'simulated' } },
      ...(url === undefined ? {} : { database: { url_env: 'DATABASE_URL' } }),
    }
    const service = new ServiceProcess(folder, [provider], settings, url === undefined ? {} : { DATABASE_URL: url })
    try {
      await service.start()
      const before = service.workers()
      process.kill(before[0]!, 'SIGKILL')
      const others = (known: readonly number[]) => () => service.workers().filter((pid) => !known.includes(pid))
      await expect.poll(others(before), { timeout: 10_000, interval: 5 }).toHaveLength(1)
      const [hung] = others(before)() as [number]
      // Until it runs its own program, its parent waits for it.
      await expect.poll(() => hasBegun(hung), { timeout: 10_000, interval: 5 }).toBe(true)
      process.kill(hung, 'SIGSTOP')
      await expect.poll(() => isRunning(hung), { timeout: hangLimitMs }).toBe(false)
      await expect.poll(() => service.errors).toContain('"reason":"start_timeout"')
      await expect.poll(others([...before, hung]), { timeout: 10_000 }).toHaveLength(1)
      expect(await service.stop('SIGTERM')).toBe(0)
    } finally {
      await service.destroy()
      await provider.close()
      rmSync(folder, { recursive: true, force: true })
    }
  },
)
