import { BoundedMap } from '../../runtime/bounded-map.ts'
import type { SessionBranches } from './cached-prefix.ts'

/** Numbers that all sessions of a process, and those of one account, may take: 32 MiB and 4 MiB. */
const maxWeight = 4 * 1024 * 1024
const maxAccountWeight = maxWeight / 8
/** What a session takes besides the digests of its items. */
const ownWeight = 64
/** Of accounts with few sessions, this share is forgotten at once: looking for the largest one takes time. */
const forgottenShare = 0.05

/** Sets of tools, per account, of which it is remembered how often conversations with them go on. */
const maxOpenings = 32
/** Then both counts are halved, so that the latest conversations decide. */
const maxBegan = 32
const noOpenings: Openings = { began: 0, wentOn: 0 }

/** Of conversations that begin in the same way: how many there were, and how many went on. */
export interface Openings {
  readonly began: number
  readonly wentOn: number
}

/** A session in memory. */
export interface KnownSession {
  readonly branches: SessionBranches
  updatedMs: number
}

interface KnownAccount {
  readonly sessions: Map<string, KnownSession>
  readonly openings: BoundedMap<number, Openings>
  weight: number
}

/**
 * The sessions that a process knows, by account. If there are too many, the account that has the most forgets its
 * oldest, so that no account displaces the sessions of others (contract 45.9).
 */
export class SessionTable {
  /** The account that was used last is last, and so is its session that was used last. */
  readonly #accounts = new Map<string, KnownAccount>()
  readonly #maxWeight: number
  readonly #maxAccountWeight: number
  #weight = 0
  /** The account that is last in the map. */
  #latest: KnownAccount | undefined

  constructor(max = maxWeight, maxOfAccount = maxAccountWeight) {
    this.#maxWeight = max
    this.#maxAccountWeight = maxOfAccount
  }

  get weight(): number {
    return this.#weight
  }

  /** The number of sessions of one account. */
  count(accountId: string): number {
    return this.#accounts.get(accountId)?.sessions.size ?? 0
  }

  get(accountId: string, session: string): KnownSession | undefined {
    return this.#accounts.get(accountId)?.sessions.get(session)
  }

  set(accountId: string, session: string, known: KnownSession): void {
    const account = this.#accounts.get(accountId) ?? newAccount()
    if (account !== this.#latest) {
      this.#accounts.delete(accountId)
      this.#accounts.set(accountId, account)
      this.#latest = account
    }
    this.#remove(account, session)
    account.sessions.set(session, known)
    this.#add(account, weightOf(known))
    while (account.weight > this.#maxAccountWeight && account.sessions.size > 1) this.#removeOldest(account)
    if (this.#weight > this.#maxWeight) this.#makeRoom()
  }

  /** What is known of an account's conversations with this opening. */
  openings(accountId: string, opening: number): Openings {
    return this.#accounts.get(accountId)?.openings.get(opening) ?? noOpenings
  }

  /** Counts a conversation of a known account. */
  began(accountId: string, opening: number): void {
    const { began, wentOn } = this.openings(accountId, opening)
    this.#setOpenings(accountId, opening, { began: began + 1, wentOn })
  }

  /** A conversation of a known account had a second turn. Another process may have answered the first. */
  wentOn(accountId: string, opening: number): void {
    const { began, wentOn } = this.openings(accountId, opening)
    this.#setOpenings(accountId, opening, { began: Math.max(began, wentOn + 1), wentOn: wentOn + 1 })
  }

  #setOpenings(accountId: string, opening: number, { began, wentOn }: Openings): void {
    const counts = began > maxBegan ? { began: began / 2, wentOn: wentOn / 2 } : { began, wentOn }
    this.#accounts.get(accountId)?.openings.setLast(opening, counts)
  }

  #makeRoom(): void {
    let largest = newAccount()
    for (const account of this.#accounts.values()) if (account.weight > largest.weight) largest = account
    if (largest.sessions.size > 1) {
      for (let left = Math.ceil(largest.sessions.size / 2); left > 0; left--) this.#removeOldest(largest)
      return
    }
    let left = Math.ceil(this.#accounts.size * forgottenShare)
    for (const [accountId, account] of this.#accounts) {
      if (left-- <= 0) return
      this.#accounts.delete(accountId)
      this.#add(account, -account.weight)
      if (account === this.#latest) this.#latest = undefined
    }
  }

  #removeOldest(account: KnownAccount): void {
    const first = account.sessions.keys().next()
    if (!first.done) this.#remove(account, first.value)
  }

  #remove(account: KnownAccount, session: string): void {
    const known = account.sessions.get(session)
    if (known === undefined) return
    account.sessions.delete(session)
    this.#add(account, -weightOf(known))
  }

  #add(account: { weight: number }, weight: number): void {
    account.weight += weight
    this.#weight += weight
  }
}

function newAccount(): KnownAccount {
  return { sessions: new Map<string, KnownSession>(), openings: new BoundedMap(maxOpenings), weight: 0 }
}

function weightOf({ branches }: KnownSession): number {
  return branches.reduce((sum, { prompt }) => sum + prompt.items.length, ownWeight)
}
