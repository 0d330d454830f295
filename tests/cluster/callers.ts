import { setTimeout as sleep } from 'node:timers/promises'
import type { Kysely } from 'kysely'
import { createAccount } from '../../src/accounts/accounts.ts'
import type { AccountsDeps } from '../../src/accounts/control-plane.ts'
import { createKey, revokeKey } from '../../src/accounts/keys.ts'
import type { Plan } from '../../src/domain/plans.ts'
import { systemClock } from '../../src/runtime/clock.ts'
import { systemRandom } from '../../src/runtime/random.ts'
import { Secret } from '../../src/runtime/secret.ts'
import type { Tables } from '../../src/storage/schema/schema.ts'
import { createStore } from '../../src/storage/store.ts'
import { type KeyInUse, runClient, type Seen } from './clients.ts'
import type { Limits, Revocation } from './records.ts'

/** Accounts with the same plan, and how many clients each has. */
export interface Group {
  readonly plan: Plan
  readonly accounts: number
  readonly clientsEach: number
  readonly thinkMs: number
  /** Whether its keys are revoked and replaced all the time. */
  readonly isRotating?: boolean
}

const keyLifeMs = { least: 4_000, most: 12_000 }
/** How long a revoked key is still used: longer than the time until its revocation holds. */
const revokedUseMs = 10_000
const tryAgainMs = 200

/** The clients of all accounts, and everything that they saw. */
export class Callers {
  readonly seen: Seen[] = []
  readonly limits = new Map<string, Limits>()
  readonly revocations = new Map<string, Revocation>()
  readonly #deps: AccountsDeps
  readonly #random: () => number
  readonly #clients: { readonly group: Group; readonly account: { key: KeyInUse } }[] = []

  constructor(db: Kysely<Tables>, pepper: string, random: () => number) {
    const parts = { clock: systemClock(), random: systemRandom(), pepper: new Secret(pepper) }
    this.#deps = { ...parts, store: createStore(db), actor: { kind: 'cli' } }
    this.#random = random
  }

  get count(): number {
    return this.#clients.length
  }

  async add(group: Group): Promise<void> {
    const { plan } = group
    for (let number = 1; number <= group.accounts; number++) {
      const { id } = await createAccount(this.#deps, `${plan.id} ${number}`, plan.id, [plan])
      this.limits.set(id, { perMinute: plan.requestsPerMinute, perMonth: plan.requestsPerMonth })
      const account = { key: await this.#newKey(id) }
      for (let client = 0; client < group.clientsEach; client++) this.#clients.push({ group, account })
    }
  }

  /** Runs all clients until it is aborted. */
  async run(port: number, over: AbortSignal): Promise<void> {
    const rotations = this.#clients.flatMap(({ group, account }) =>
      group.isRotating === true ? [this.#rotate(account, over)] : [],
    )
    const clients = this.#clients.map(({ group: { thinkMs }, account }, number) =>
      runClient(
        {
          port,
          number,
          random: this.#random,
          thinkMs,
          key: () => account.key,
          onSeen: (seen) => this.seen.push(seen),
        },
        over,
      ),
    )
    await Promise.all([...rotations, ...clients])
  }

  async #rotate(account: { key: KeyInUse }, over: AbortSignal): Promise<void> {
    const wait = (ms: number): Promise<unknown> => sleep(ms, undefined, { signal: over }).catch(() => undefined)
    while (!over.aborted) {
      await wait(keyLifeMs.least + this.#random() * (keyLifeMs.most - keyLifeMs.least))
      if (over.aborted) return
      const { keyId, accountId } = account.key
      const startedMs = Date.now()
      this.revocations.set(keyId, { startedMs, confirmedMs: Infinity })
      await untilDone(() => revokeKey(this.#deps, keyId), over, 'key_already_revoked')
      if (over.aborted) return
      this.revocations.set(keyId, { startedMs, confirmedMs: Date.now() })
      await wait(revokedUseMs)
      const next = await untilDone(() => this.#newKey(accountId), over)
      if (next !== undefined) account.key = next
    }
  }

  async #newKey(accountId: string): Promise<KeyInUse> {
    const { key, stored } = await createKey(this.#deps, accountId, 'drill')
    return { accountId, keyId: stored.id, key: key.reveal() }
  }
}

/** Tries again while the database is unavailable. `doneCode` is the error that says that an earlier try worked. */
async function untilDone<T>(work: () => Promise<T>, over: AbortSignal, doneCode?: string): Promise<T | undefined> {
  while (!over.aborted) {
    try {
      return await work()
    } catch (error) {
      if (doneCode !== undefined && error instanceof Error && 'code' in error && error.code === doneCode)
        return undefined
      await sleep(tryAgainMs)
    }
  }
  return undefined
}
