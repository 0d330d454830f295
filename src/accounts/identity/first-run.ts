import type { Account, StoredKey } from '../../domain/accounts.ts'
import { isWellFormedKey, keyHint, mintKey } from '../../domain/keys.ts'
import type { Plan } from '../../domain/plans.ts'
import { Secret } from '../../runtime/secret.ts'
import { SetupError } from '../../runtime/setup-error.ts'
import { createAccount } from '../accounts.ts'
import type { AccountsDeps } from '../control-plane.ts'
import type { ChangeStore, DeclaredStore } from '../declared/declared-ports.ts'
import { addKey, effectiveState, maxListedKeys } from '../keys.ts'
import type { AccountStore } from '../ports.ts'

/** The account of a service that one person runs for themselves. */
export const localAccountName = 'local'
const firstKeyName = 'first key'
/** Maximum attempts; another process may change the database during each of them. */
const maxTries = 5

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

export interface FirstRunSettings {
  readonly plans: readonly Plan[]
  /** The ID of the account's plan. */
  readonly localPlan: string
}

/** What the first run needs. It makes its changes in one transaction, if nothing changed since it read the state. */
export interface FirstRunDeps extends AccountsDeps<AccountStore & Pick<ChangeStore, 'revision'>> {
  readonly transactions: DeclaredStore
}

/**
 * Creates the local account and its first key if the store has no accounts (contract 32.1). Later runs create nothing. If
 * several nodes start at the same time on one database, one of them creates both. @throws SetupError
 */
export async function firstRun(deps: FirstRunDeps, settings: FirstRunSettings, file: FirstKeyFile): Promise<FirstRun> {
  const { plans, localPlan } = settings
  for (let tries = 0; tries < maxTries; tries++) {
    const revision = await deps.store.revision()
    const [only, second] = await deps.store.listAccounts(2)
    const keys = only === undefined ? [] : await deps.store.listKeys(only.id, maxListedKeys)
    const isLocal = only === undefined || only.name === localAccountName
    if (only !== undefined && (second !== undefined || !isLocal || keys.length > 0))
      return { account: only, key: undefined, fileKeyWorks: worksInFile(keys, file, deps.clock.nowMs()) }
    const key = mintKey(deps.random)
    const account = await deps.transactions.atRevision(revision, async (store) => {
      const own = { ...deps, store }
      const created = only ?? (await createAccount(own, localAccountName, localPlan, plans))
      await addKey(own, key, created.id, firstKeyName)
      // Before the commit, so that a crash in between cannot leave a key that nobody knows.
      file.write(key)
      return created
    })
    if (account !== 'stale') return { account, key, fileKeyWorks: true }
  }
  throw new SetupError('other processes keep changing the database', 'start the service again')
}

function worksInFile(keys: readonly StoredKey[], file: FirstKeyFile, nowMs: number): boolean {
  const stored = file.read()?.trim() ?? ''
  const hint = isWellFormedKey(stored) ? keyHint(new Secret(stored)) : undefined
  return keys.some((key) => key.hint === hint && ['active', 'retiring'].includes(effectiveState(key, nowMs)))
}
