import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Plan } from '../src/domain/plans.ts'
import type { RequestOpening } from '../src/domain/requests.ts'
import { openSqliteLedger, type SqliteLedger } from '../src/storage/ledger/ledger-sqlite.ts'
import { openSqlite } from '../src/storage/sqlite/open-sqlite.ts'
import { clock, mintId, outcome } from './ledger-sample.ts'

const requestsEach = 40_000
const rounds = 3
const plan: Plan = { id: 'bench', name: 'Bench', requestsPerMinute: 1e9, requestsPerMonth: 1e9, premium: true }

type Scenario = (ledger: SqliteLedger, opening: RequestOpening) => Promise<void>

/** The ways in which a request can go through the ledger. */
const scenarios: Record<string, { readonly stream: boolean; readonly run: Scenario }> = {
  'whole answer, delivered and then settled': {
    stream: false,
    run: async (ledger, opening) => {
      const admission = await ledger.admit(opening, plan)
      await admission.durable()
      admission.deliver()
      admission.settle(outcome, 'done')
    },
  },
  'whole answer, settled and then delivered': {
    stream: false,
    run: async (ledger, opening) => {
      const admission = await ledger.admit(opening, plan)
      admission.settle(outcome, 'due')
      await admission.durable()
      admission.deliver()
    },
  },
  stream: {
    stream: true,
    run: async (ledger, opening) => {
      const admission = await ledger.admit(opening, plan)
      await admission.durable()
      admission.deliver()
      await new Promise((resolve) => setImmediate(resolve))
      admission.settle(outcome, 'done')
    },
  },
}

/** CPU of both threads per request in microseconds, with `waiting` requests under way at once. */
async function measure(
  scenario: { stream: boolean; run: Scenario },
  waiting: number,
  accounts: number,
): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), 'svc-router-bench-'))
  const db = await openSqlite(folder)
  await db.destroy()
  const ledger = await openSqliteLedger(folder, clock)
  const names = Array.from({ length: accounts }, (_, index) => `acc_${String(index).padStart(24, '0')}`)
  let next = 0
  const runMany = async (count: number) => {
    const end = next + count
    const lane = async () => {
      while (next < end) {
        const accountId = names[next++ % accounts]!
        const opening = { id: mintId(), accountId, keyId: 'key_000000000000000000000001', units: 1 }
        await scenario.run(ledger, {
          ...opening,
          profile: 'svc-router/frontier',
          format: 'openai-chat',
          stream: scenario.stream,
        })
      }
    }
    await Promise.all(Array.from({ length: waiting }, lane))
  }
  try {
    await runMany(requestsEach / 4)
    const before = process.cpuUsage()
    await runMany(requestsEach)
    const spent = process.cpuUsage(before)
    return (spent.user + spent.system) / requestsEach
  } finally {
    await ledger.close()
    rmSync(folder, { recursive: true })
  }
}

const median = (values: readonly number[]) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!

for (const [name, scenario] of Object.entries(scenarios)) {
  for (const [waiting, accounts] of [
    [100, 1],
    [100, 100],
    [1000, 100],
  ] as const) {
    const results: number[] = []
    for (let round = 0; round < rounds; round++) results.push(await measure(scenario, waiting, accounts))
    const label = `${name}; ${waiting} at once, ${accounts} account${accounts === 1 ? '' : 's'}`
    process.stdout.write(`${label.padEnd(75)} ${median(results).toFixed(1)} µs CPU per request, both threads\n`)
  }
}
