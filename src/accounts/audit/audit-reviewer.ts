import { writeLink } from '../../domain/audit-chain.ts'
import type { Checkpoint, CheckpointKeys } from '../../domain/checkpoint.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { AuditStore, CheckpointStore } from '../ports.ts'
import { type AuditVerdict, readAll, verifyAudit } from './audit.ts'
import { signRemembered } from './checkpoints.ts'

/** How long a caller waits for a verification. A longer one continues, and its result is visible later. */
const waitMs = 5_000
/** A verification that started this recently is reused instead of repeated. */
const againAfterMs = 5_000
/** Minimum size of one exported chunk, in characters. */
const pieceCharacters = 65_536

/** The last verification: its verdict and time, or that it failed. */
export interface AuditReview {
  readonly verdict: AuditVerdict | 'failed'
  readonly atMs: number
  readonly tookMs: number
}

export interface AuditReviewerDeps {
  readonly store: AuditStore
  readonly keys: CheckpointKeys
  readonly memory: CheckpointStore
  readonly clock: Clock
  /** Called when a verification fails, or when a checkpoint cannot be signed. */
  readonly onFailed: (error: unknown) => void
}

/** The audit log as the operator console uses it. However many callers ask, only one verification runs at a time. */
export class AuditReviewer {
  readonly #deps: AuditReviewerDeps
  #last: AuditReview | undefined
  #running: { readonly end: Promise<void>; readonly sinceMs: number } | undefined

  constructor(deps: AuditReviewerDeps) {
    this.#deps = deps
  }

  get store(): Pick<AuditStore, 'listAudit' | 'listCheckpoints' | 'auditHead'> {
    return this.#deps.store
  }

  /** The last verification since the process started; undefined before the first. */
  get last(): AuditReview | undefined {
    return this.#last
  }

  /** When the running verification started; undefined if none is running. */
  get runningSinceMs(): number | undefined {
    return this.#running?.sinceMs
  }

  /**
   * Verifies the whole log, or joins the verification that is running. Resolves when it ends, or after five seconds.
   */
  async verify(): Promise<void> {
    const { clock } = this.#deps
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
      return await signRemembered(this.#deps, this.#deps.clock.nowMs())
    } catch (error) {
      this.#deps.onFailed(error)
      throw error
    }
  }

  /** The whole log, one line per entry, in chunks of many lines: the format that `audit verify --file` reads. */
  async *lines(): AsyncGenerator<string, undefined> {
    let piece = ''
    for await (const link of readAll(this.#deps.store)) {
      piece += `${writeLink(link)}\n`
      if (piece.length < pieceCharacters) continue
      yield piece
      piece = ''
    }
    yield piece
    return undefined
  }

  async #run(sinceMs: number): Promise<void> {
    const { store, keys, clock, onFailed } = this.#deps
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
