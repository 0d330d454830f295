import type { Checkpoint, CheckpointKeys } from '../domain/checkpoint.ts'
import { writeLink } from '../domain/audit-chain.ts'
import type { Clock } from '../domain/clock.ts'
import { type AuditVerdict, readAll, verifyAudit } from './audit.ts'
import { signRemembered } from './checkpoints.ts'
import type { AuditStore, CheckpointMemory } from './ports.ts'

/** Whoever asks for a verification waits so long at most; a longer one goes on, and its end is seen later. */
const waitMs = 5_000
/** One that began so lately is not made again. */
const againAfterMs = 5_000
/** The log is handed out in pieces of at least this length. */
const pieceCharacters = 65_536

/** The last verification: what it found and when, or that it could not be made. */
export interface AuditReview {
  readonly verdict: AuditVerdict | 'failed'
  readonly atMs: number
  readonly tookMs: number
}

export interface AuditDeskNeeds {
  readonly store: AuditStore
  readonly keys: CheckpointKeys
  readonly memory: CheckpointMemory
  readonly clock: Clock
  /** Told of a verification that could not be made, and of a log that could not be signed. */
  readonly onFailed: (error: unknown) => void
}

/** The audit log for whoever operates the service: one verification at a time, however many ask for it. */
export class AuditDesk {
  readonly #needs: AuditDeskNeeds
  #last: AuditReview | undefined
  #running: { readonly end: Promise<void>; readonly sinceMs: number } | undefined

  constructor(needs: AuditDeskNeeds) {
    this.#needs = needs
  }

  get store(): Pick<AuditStore, 'listAudit' | 'listCheckpoints' | 'auditHead'> {
    return this.#needs.store
  }

  /** What the last verification since the start found; undefined where there was none. */
  get last(): AuditReview | undefined {
    return this.#last
  }

  /** Since when one is under way. */
  get runningSinceMs(): number | undefined {
    return this.#running?.sinceMs
  }

  /** Verifies the whole log, or joins who does already; comes back when it ended, or after five seconds. */
  async verify(): Promise<void> {
    const { clock } = this.#needs
    const nowMs = clock.nowMs()
    if (this.#running === undefined) {
      if (this.#last !== undefined && nowMs - this.#last.atMs < againAfterMs) return
      this.#running = { sinceMs: nowMs, end: this.#run(nowMs) }
    }
    const { promise: waited, resolve } = Promise.withResolvers<void>()
    const timer = clock.after(waitMs, resolve)
    await Promise.race([this.#running.end, waited])
    timer.cancel()
  }

  /** See `signRemembered`. */
  async checkpoint(): Promise<Checkpoint | undefined> {
    try {
      return await signRemembered(this.#needs, this.#needs.clock.nowMs())
    } catch (error) {
      this.#needs.onFailed(error)
      throw error
    }
  }

  /** The whole log in pieces of many lines, one for each entry, as `audit verify --file` reads it. */
  async *lines(): AsyncGenerator<string, undefined> {
    let piece = ''
    for await (const link of readAll(this.#needs.store)) {
      piece += `${writeLink(link)}\n`
      if (piece.length < pieceCharacters) continue
      yield piece
      piece = ''
    }
    yield piece
    return undefined
  }

  async #run(sinceMs: number): Promise<void> {
    const { store, keys, clock, onFailed } = this.#needs
    let verdict: AuditReview['verdict'] = 'failed'
    try {
      verdict = await verifyAudit(store, { keys })
    } catch (error) {
      onFailed(error)
    }
    const atMs = clock.nowMs()
    this.#last = { verdict, atMs, tookMs: atMs - sinceMs }
    this.#running = undefined
  }
}
