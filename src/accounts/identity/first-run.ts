import type { Account } from '../../domain/accounts.ts'
import { isWellFormedKey, keyHint, mintKey } from '../../domain/keys.ts'
import type { Plan } from '../../domain/plans.ts'
import { Secret } from '../../runtime/secret.ts'
import { AccountsError } from '../accounts-error.ts'
import { createAccount } from '../accounts.ts'
import type { AccountsDeps } from '../control-plane.ts'
import { addKey, effectiveState, maxListedKeys } from '../keys.ts'

/** The account of a service that one person runs for themselves. */
export const localAccountName = 'local'
const firstKeyName = 'first key'
const preferredPlan = 'max'

/** The file that stores the first key, readable only by its owner. */
export interface FirstKeyFile {
  /** Its content; undefined if the file does not exist. */
  read(): string | undefined
  write(key: Secret): void
}

/** What the first run created, or what a later run found. */
export interface FirstRun {
  readonly account: Account
  /** The key if this run created it, otherwise undefined. */
  readonly key: Secret | undefined
  /** Whether the key in the file works now. */
  readonly fileKeyWorks: boolean
}

/**
 * Creates the local account and its first key if the store has no accounts (contract 32.1). The key is written to its
 * file before the store, so that a crash in between leaves no key that nobody has. Later runs create nothing.
 */
export async function firstRun(deps: AccountsDeps, plans: readonly Plan[], file: FirstKeyFile): Promise<FirstRun> {
  const [only, second] = await deps.store.listAccounts(2)
  const account = only ?? (await createLocalAccount(deps, plans))
  const keys = await deps.store.listKeys(account.id, maxListedKeys)
  if (second === undefined && account.name === localAccountName && keys.length === 0) {
    const key = mintKey(deps.random)
    file.write(key)
    await addKey(deps, key, account.id, firstKeyName)
    return { account, key, fileKeyWorks: true }
  }
  const stored = file.read()?.trim() ?? ''
  const hint = isWellFormedKey(stored) ? keyHint(new Secret(stored)) : undefined
  const nowMs = deps.clock.nowMs()
  const fileKeyWorks = keys.some(
    (key) => key.hint === hint && ['active', 'retiring'].includes(effectiveState(key, nowMs)),
  )
  return { account, key: undefined, fileKeyWorks }
}

async function createLocalAccount(deps: AccountsDeps, plans: readonly Plan[]): Promise<Account> {
  try {
    return await createAccount(deps, localAccountName, firstPlan(plans), plans)
  } catch (error) {
    if (!(error instanceof AccountsError && error.code === 'account_name_taken')) throw error
    // Another node on the same database was faster.
    const [account] = await deps.store.listAccounts(1)
    if (account === undefined) throw error
    return account
  }
}

function firstPlan(plans: readonly Plan[]): string {
  return (plans.find((plan) => plan.id === preferredPlan) ?? plans.at(-1))?.id ?? preferredPlan
}
