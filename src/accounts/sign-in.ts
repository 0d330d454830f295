import type { Account } from '../domain/accounts.ts'
import { idMinter } from '../domain/ids.ts'
import type { AccountEmail, SignInProof } from '../domain/identity.ts'
import type { IdentityPlane } from './identity.ts'

/** Addresses of one account. */
export const maxEmailsPerAccount = 5

/** The account that a proof leads to; undefined where nobody has the address that it proved. */
export async function findProvenAccount(plane: IdentityPlane, proof: SignInProof): Promise<Account | undefined> {
  if (proof.accountId !== null) return plane.store.findAccount(proof.accountId)
  if (proof.address === null) return undefined
  const email = await plane.store.findEmail(proof.address)
  return email === undefined ? undefined : plane.store.findAccount(email.accountId)
}

/**
 * The account of an address that was just proven; made where nobody has it. Of two that come at once one makes it, and
 * both are let in to the same one.
 */
export async function setUpAccount(
  plane: IdentityPlane,
  address: string,
  planId: string,
): Promise<{ readonly account: Account; readonly isNew: boolean }> {
  const nowMs = Math.floor(plane.clock.nowMs())
  const id = idMinter('acc_', () => nowMs, plane.random)()
  // No part of the address: names are shown to operators and written down.
  const name = `account ${id.slice(-nameCharacters)}`
  const account: Account = { id, name, planId, suspended: false, createdAtMs: nowMs }
  if (await plane.store.addAccountWithEmail(account, address)) return { account, isNew: true }
  const email = await plane.store.findEmail(address)
  const existing = email === undefined ? undefined : await plane.store.findAccount(email.accountId)
  if (existing === undefined) throw new Error('an address that is taken belongs to nobody')
  return { account: existing, isNew: false }
}

/** Adds an address that was just proven to the account that asked; false where another has it, or there are too many. */
export function addProvenEmail(plane: IdentityPlane, accountId: string, address: string): Promise<boolean> {
  const email: AccountEmail = { address, accountId, createdAtMs: Math.floor(plane.clock.nowMs()) }
  return plane.store.addEmail(email, maxEmailsPerAccount)
}

const nameCharacters = 6
