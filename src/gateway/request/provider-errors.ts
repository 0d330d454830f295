import type { EventLog } from '../../domain/events.ts'
import { providerErrorBinding, readProviderError, type SealedProviderError } from '../../domain/provider-error.ts'
import type { Clock, Timer } from '../../runtime/clock.ts'
import { errorName } from '../../runtime/describe-bug.ts'
import { idMinter } from '../../runtime/ids.ts'
import type { RandomBytes } from '../../runtime/random.ts'
import type { Sealer } from '../../runtime/sealer.ts'
import type { CallTarget } from '../ports.ts'

/** Messages wait this long so that many are written at once. */
const flushMs = 500
/** Messages stored per flush; only a few per backend, so that one outage leaves room for others. */
const maxWaiting = 100
const maxOfBackend = 10

export interface ProviderErrorsDeps {
  readonly store: { addProviderErrors(errors: readonly SealedProviderError[]): Promise<void> }
  readonly sealer: Sealer
  readonly clock: Clock
  readonly random: RandomBytes
  readonly log: EventLog
}

type FailedBackend = Pick<CallTarget, 'id' | 'owner'>

interface PendingProviderError {
  readonly backend: FailedBackend
  readonly requestId: string
  readonly body: string
  readonly mayBeAnswer: boolean
  readonly atMs: number
}

/**
 * Stores error messages of failing backends, encrypted for the owners of those backends (contract 21.11). Best
 * effort: dropping a message affects nothing else.
 */
export class ProviderErrors {
  readonly #deps: ProviderErrorsDeps
  readonly #mintId: () => string
  #waiting: PendingProviderError[] = []
  #perBackend = new Map<string, number>()
  #timer: Timer | undefined

  constructor(deps: ProviderErrorsDeps) {
    this.#deps = deps
    this.#mintId = idMinter('per_', () => deps.clock.nowMs(), deps.random)
  }

  /**
   * Takes the body of a backend's failure. If the body may be part of an answer, only an error's message is stored.
   * Cheap: the text is parsed and encrypted later.
   */
  note(backend: FailedBackend, requestId: string, body: string, mayBeAnswer: boolean): void {
    const count = this.#perBackend.get(backend.id) ?? 0
    if (this.#waiting.length >= maxWaiting || count >= maxOfBackend) return
    this.#perBackend.set(backend.id, count + 1)
    this.#waiting.push({ backend, requestId, body, mayBeAnswer, atMs: this.#deps.clock.nowMs() })
    this.#timer ??= this.#deps.clock.after(flushMs, () => void this.flush())
  }

  /** Writes the waiting messages. Never rejects. */
  async flush(): Promise<void> {
    const { store, log } = this.#deps
    this.#timer?.cancel()
    this.#timer = undefined
    const errors = this.#waiting.flatMap((waiting) => this.#seal(waiting))
    this.#waiting = []
    this.#perBackend = new Map()
    if (errors.length === 0) return
    try {
      await store.addProviderErrors(errors)
    } catch (error) {
      log({ event: 'store_failing', reason: errorName(error) })
    }
  }

  #seal({ backend, requestId, body, mayBeAnswer, atMs }: PendingProviderError): SealedProviderError[] {
    const text = readProviderError(body, mayBeAnswer)
    if (text === undefined) return []
    const accountId = backend.owner ?? null
    const sealed = this.#deps.sealer.seal(providerErrorBinding(accountId, requestId), text)
    return [{ id: this.#mintId(), requestId, backend: backend.id, accountId, atMs: Math.floor(atMs), sealed }]
  }
}
