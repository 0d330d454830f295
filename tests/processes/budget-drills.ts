import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Kysely } from 'kysely'
import { expect } from 'vitest'
import { createAccount } from '../../src/accounts/accounts.ts'
import { budgetStates, setBudget } from '../../src/accounts/budgets.ts'
import type { AccountsDeps } from '../../src/accounts/control-plane.ts'
import { createKey } from '../../src/accounts/keys.ts'
import { nanoPerUsd } from '../../src/domain/budgets.ts'
import { systemClock } from '../../src/runtime/clock.ts'
import { systemRandom } from '../../src/runtime/random.ts'
import { Secret } from '../../src/runtime/secret.ts'
import type { SimulatedProvider } from '../../src/simulation/providers/simulated-provider.ts'
import { connectPostgres } from '../../src/storage/postgres/open-postgres.ts'
import type { Tables } from '../../src/storage/schema/schema.ts'
import { createStore } from '../../src/storage/store.ts'
import { ServiceProcess } from '../faults/service-process.ts'
import { type BillingProvider, startBillingProvider, usdPerMillion } from './billing-provider.ts'

const nodeCount = 3
export const requestsPerDrill = 1_000
/** A budget of one US dollar. */
const limit = nanoPerUsd
/** What each request asks for at most. */
const outputTokens = 100
/** A client doubles its wait for running requests at most so often. */
const mostDoublings = 2
const pepper = 'the pepper of every node of this test'
const maxPlan = { id: 'max', name: 'Max', premium: true, requestsPerMinute: 1_000_000, requestsPerMonth: 100_000_000 }

/** What one drill showed. Amounts are in nanodollars. */
export interface DrillReport {
  /** What the provider billed, and what the budget says is spent. */
  readonly billed: number
  readonly spent: number
  /** What records say that requests still hold, after the killed node has started again. */
  readonly held: number
  /** Whether the counters of the budget equal the sums of the records. */
  readonly isBalanced: boolean
  readonly answered: number
  readonly refused: number
  /** Refusals with 402 of requests whose worst case the budget could still pay for at the end. */
  readonly needless: number
  /** Refusals with 429 before a request was answered or refused with 402. */
  readonly waits: number
  /** Requests whose connection broke when the node was killed. */
  readonly cut: number
  /** Requests without an answer or a refusal when the node was killed. */
  readonly running: number
}

/** What every drill must show (contract 46.3, 46.5). */
export function expectKept(report: DrillReport): void {
  expect(report.billed).toBeLessThanOrEqual(limit)
  expect(report.spent).toBeLessThanOrEqual(limit)
  // A call whose end nobody saw counts with its worst case.
  expect(report.spent).toBeGreaterThanOrEqual(report.billed)
  expect(report).toMatchObject({ held: 0, isBalanced: true })
  expect(report.answered + report.refused).toBe(requestsPerDrill)
  expect(report.running).toBeGreaterThan(0)
}

interface Answer {
  readonly status: number
  /** The worst case of the request. */
  readonly need: number
  readonly retryAfterMs: number
}

/** Three nodes on one PostgreSQL database, and a provider that bills. */
export class BudgetDrills {
  readonly #db: Kysely<Tables>
  readonly #accounts: AccountsDeps
  readonly #folder = mkdtempSync(join(tmpdir(), 'svc-router-budget-drills-'))
  readonly #nodes: ServiceProcess[] = []
  readonly #provider: BillingProvider
  #drills = 0
  /** A node that is being restarted: a load balancer would not send it requests. */
  #down: ServiceProcess | undefined

  private constructor(db: Kysely<Tables>, provider: BillingProvider) {
    this.#db = db
    this.#provider = provider
    const actor = { kind: 'cli' } as const
    const store = createStore(db)
    this.#accounts = { store, clock: systemClock(), random: systemRandom(), pepper: new Secret(pepper), actor }
  }

  static async start(url: string): Promise<BudgetDrills> {
    const drills = new BudgetDrills(connectPostgres(url, { maxConnections: 2 }), await startBillingProvider('alpha'))
    await drills.#startNodes(url)
    return drills
  }

  async #startNodes(url: string): Promise<void> {
    const settings = {
      database: { url_env: 'DATABASE_URL' },
      plans: { max: { name: 'Max', requests_per_minute: 1_000_000, requests_per_month: 100_000_000, premium: true } },
      backends: { alpha: { provider: 'alpha', model: 'billed', usd_per_million: usdPerMillion } },
    }
    const env = {
      DATABASE_URL: url,
      SVC_ROUTER_PEPPER: pepper,
      SVC_ROUTER_SEALING_KEY: Buffer.alloc(32, 7).toString('base64'),
    }
    for (let at = 0; at < nodeCount; at += 1) {
      const providers = [this.#provider as unknown as SimulatedProvider]
      this.#nodes.push(new ServiceProcess(join(this.#folder, `node-${at}`), providers, settings, env))
    }
    await Promise.all(this.#nodes.map((node) => node.start()))
  }

  async stop(): Promise<void> {
    await Promise.all(this.#nodes.map((node) => node.destroy()))
    await this.#db.destroy()
    await this.#provider.close()
    rmSync(this.#folder, { recursive: true, force: true })
  }

  /** 1,000 requests at once against a new budget of one dollar, while a node is killed and started again. */
  async run(): Promise<DrillReport> {
    const drill = (this.#drills += 1)
    const { id } = await createAccount(this.#accounts, `drill ${drill}`, 'max', [maxPlan])
    const { key } = await createKey(this.#accounts, id, 'test')
    const store = createStore(this.#db)
    const kind = { scope: 'account', subject: '', unit: 'usd', window: 'month', rolling: drill % 2 === 0 } as const
    await setBudget({ ...this.#accounts, store }, id, { ...kind, limit }, 'account', [])
    const counts = { answered: 0, refused: 0, waits: 0, cut: 0 }
    let lastNeed = 0
    const one = async (at: number): Promise<void> => {
      let waits = 0
      for (let tries = 0; ; tries += 1) {
        const usable = this.#nodes.filter((node) => node !== this.#down)
        const answer = await this.#ask(usable[(at + tries) % usable.length]!, key.reveal(), id)
        if (answer === undefined) {
          counts.cut += 1
          await sleep(200)
        } else if (answer.status === 200) {
          counts.answered += 1
          return
        } else if (answer.status === 402) {
          counts.refused += 1
          lastNeed = answer.need
          return
        } else if (answer.status === 429) {
          counts.waits += 1
          // Like clients of real agents: as long as it is told, and twice as long each time.
          await sleep(answer.retryAfterMs * 2 ** Math.min(waits, mostDoublings) * (1 + Math.random() / 4))
          waits += 1
        } else await sleep(200)
      }
    }
    const requests = Array.from({ length: requestsPerDrill }, (_, at) => one(at))
    const victim = this.#nodes[drill % nodeCount]!
    // While answers are on their way.
    while (counts.answered < 10 + (drill % 7) * 15) await sleep(1)
    const running = requestsPerDrill - counts.answered - counts.refused
    this.#down = victim
    await victim.stop('SIGKILL')
    await victim.start()
    this.#down = undefined
    await Promise.all(requests)
    return await this.#report(id, { ...counts, running }, lastNeed)
  }

  async #report(
    accountId: string,
    counts: Pick<DrillReport, 'answered' | 'refused' | 'waits' | 'cut' | 'running'>,
    need: number,
  ): Promise<DrillReport> {
    const store = createStore(this.#db)
    const state = async () => (await budgetStates(store, accountId, Date.now()))[0]!
    for (let tries = 0; (await state()).held > 0 && tries < 100; tries += 1) await sleep(100)
    const { spent, held } = await state()
    const booked = await this.#booked(accountId)
    const counters = await this.#db
      .selectFrom('budget_spending')
      .select('held')
      .where('account_id', '=', accountId)
      .execute()
    return {
      ...counts,
      billed: this.#provider.bills.get(accountId) ?? 0,
      spent,
      held,
      isBalanced: booked === spent && counters.every((counter) => counter.held === 0),
      needless: counts.refused > 0 && limit - spent >= need ? counts.refused : 0,
    }
  }

  async #booked(accountId: string): Promise<number> {
    const rows = await this.#db.selectFrom('requests').select('booked').where('account_id', '=', accountId).execute()
    const entries = rows.flatMap(({ booked }) => JSON.parse(booked ?? '[]') as { spent: number }[])
    return entries.reduce((sum, { spent }) => sum + spent, 0)
  }

  /** Undefined if the connection broke. `need` is the worst case of the request. */
  async #ask(node: ServiceProcess, key: string, user: string): Promise<Answer | undefined> {
    const body = {
      model: 'svc-router/frontier',
      messages: [{ role: 'user', content: 'Say hello.' }],
      max_tokens: outputTokens,
      user,
    }
    const text = JSON.stringify(body)
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json', 'user-agent': 'drill/1.0' }
    try {
      const answer = await fetch(`http://127.0.0.1:${node.port}/v1/chat/completions`, {
        method: 'POST',
        headers,
        body: text,
      })
      await answer.arrayBuffer()
      // As docs/budgets.md describes it: every byte counts as a token.
      const need = ((text.length + 1_024) * usdPerMillion.input + outputTokens * usdPerMillion.output) * 1_000
      return { status: answer.status, need, retryAfterMs: 1_000 * Number(answer.headers.get('retry-after') ?? 1) }
    } catch {
      return undefined
    }
  }
}
