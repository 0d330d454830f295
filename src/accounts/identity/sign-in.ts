import type { Account } from '../../domain/accounts.ts'
import type { AccountEmail, Passkey, SignInProof } from '../../domain/identity.ts'
import { idMinter } from '../../runtime/ids.ts'
import { auditRecord, type AccountsDeps } from '../control-plane.ts'
import type { IdentityStore } from '../ports.ts'
import type { IdentityDeps } from './identity.ts'

/** Addresses of one account (contract 19.7). */
export const maxEmailsPerAccount = 5
/** Passkeys of one account (contract 19.7). */
export const maxPasskeysPerAccount = 10
/** How many final characters of an account's id become part of its default name. */
const nameCharacters = 6

/** The account a proof belongs to; undefined if no account has the verified address. */
export async function findProvenAccount(deps: IdentityDeps, proof: SignInProof): Promise<Account | undefined> {
  if (proof.accountId !== null) return deps.store.findAccount(proof.accountId)
  if (proof.address === null) return undefined
  const email = await deps.store.findEmail(proof.address)
  return email === undefined ? undefined : deps.store.findAccount(email.accountId)
}

/**
 * The account of a verified address, created if none has it. Of two concurrent calls one creates it, and both return
 * the same account.
 */
export async function setUpAccount(
  deps: IdentityDeps,
  address: string,
  planId: string,
): Promise<{ readonly account: Account; readonly isNew: boolean }> {
  const nowMs = Math.floor(deps.clock.nowMs())
  const id = idMinter('acc_', () => nowMs, deps.random)()
  // Not derived from the address: names are shown to operators and logged.
  const name = `account ${id.slice(-nameCharacters)}`
  const account: Account = { id, name, planId, suspended: false, createdAtMs: nowMs }
  // Nobody is signed in yet: the service itself creates it for the owner of the address.
  const record = auditRecord({ ...deps, actor: { kind: 'system' } }, { type: 'account.created', accountId: id, planId })
  if (await deps.store.addAccountWithEmail(account, address, record)) return { account, isNew: true }
  const email = await deps.store.findEmail(address)
  const existing = email === undefined ? undefined : await deps.store.findAccount(email.accountId)
  if (existing === undefined) throw new Error('the address is taken, but no account has it')
  return { account: existing, isNew: false }
}

/** What changes to sign-in methods need. */
type SignInDeps = AccountsDeps<IdentityStore>

/** Adds a verified address to the account that requested it; false if another account has it, or there are too many. */
export function addProvenEmail(deps: SignInDeps, accountId: string, address: string): Promise<boolean> {
  const record = auditRecord(deps, { type: 'email.added', accountId })
  const email: AccountEmail = { address, accountId, createdAtMs: record.atMs }
  return deps.store.addEmail(email, maxEmailsPerAccount, record)
}

/** Removes an address from an account; false if the account does not have it. */
export function removeEmail(deps: SignInDeps, accountId: string, address: string): Promise<boolean> {
  return deps.store.removeEmail(accountId, address, auditRecord(deps, { type: 'email.removed', accountId }))
}

/** Adds a verified passkey; false if it is already registered, or there are too many. */
export function addPasskey(deps: SignInDeps, passkey: Omit<Passkey, 'createdAtMs' | 'lastUsedAtMs'>): Promise<boolean> {
  const record = auditRecord(deps, { type: 'passkey.added', accountId: passkey.accountId })
  const added = { ...passkey, createdAtMs: record.atMs, lastUsedAtMs: null }
  return deps.store.addPasskey(added, maxPasskeysPerAccount, record)
}

/** Removes a passkey from an account; false if the account does not have it. */
export function removePasskey(deps: SignInDeps, accountId: string, passkeyId: string): Promise<boolean> {
  return deps.store.removePasskey(accountId, passkeyId, auditRecord(deps, { type: 'passkey.removed', accountId }))
}
