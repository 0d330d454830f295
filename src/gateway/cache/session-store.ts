/** What is stored of a session: checksums and figures, no text (contract 45.8). Times are epoch milliseconds. */
export interface StoredCacheSession {
  readonly accountId: string
  /** Keyed digest of the session's identity, which includes the account. */
  readonly session: string
  readonly state: string
  readonly updatedMs: number
  /** When it is deleted. */
  readonly expiresMs: number
}

/** Where sessions are stored for other processes and after a restart. */
export interface CacheSessionStore {
  findCacheSession(accountId: string, session: string): Promise<StoredCacheSession | undefined>
  /** Of two states of a session, the later one stays. */
  saveCacheSessions(sessions: readonly StoredCacheSession[]): Promise<void>
}
