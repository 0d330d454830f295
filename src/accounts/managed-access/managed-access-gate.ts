import type { AuditEvent, AuditRecord, GateReason } from '../../domain/audit.ts'
import type { ManagedReadiness } from '../../domain/managed-access.ts'
import type { Timer } from '../../runtime/clock.ts'
import { errorName } from '../../runtime/describe-bug.ts'
import type { AuditStore } from '../ports.ts'
import { checkReadiness, type ReadinessDeps } from './managed-readiness.ts'

/** Pause between two rounds of checks (contract 23.4). */
const everyMs = 400
/** The gate is closed unless a successful round started this recently: a check that hangs counts as failed. */
const trustMs = 900
/**
 * After a failed check, all checks must pass for this long before the gate opens again, so that it does not flap
 * (contract 23.4).
 */
const stableMs = 10_000

export interface GateDeps extends ReadinessDeps {
  readonly store: ReadinessDeps['store'] & Pick<AuditStore, 'appendAudit' | 'readAudit'>
  /** Called when the gate opens or closes, and when the audit event about that cannot be appended. */
  readonly onEvent: (event: GateEvent) => void
}

/** A gate event for the service log. */
export type GateEvent =
  | { readonly what: 'opened' | 'shut'; readonly reason: GateReason }
  | { readonly what: 'unrecorded'; readonly reason: string }

const nobody: ReadonlySet<string> = new Set()

/**
 * The live gate of managed access (contract 23.3): open for a provider only while the operator's switch is on and all
 * three checks pass. The checks run more than twice a second, and the gate closes within a second of a failure. While
 * the switch is off, only the switch is read.
 */
export class ManagedAccessGate {
  readonly #deps: GateDeps
  #onChange: () => void = () => {}
  #open = nobody
  #failedAtMs = Number.NEGATIVE_INFINITY
  #next: Timer | undefined
  #trust: Timer | undefined
  #round: Promise<void> = Promise.resolve()
  #recording: Promise<void> = Promise.resolve()
  #isEnded = false

  constructor(deps: GateDeps) {
    this.#deps = deps
  }

  /** Whether managed backends of a provider may serve now; called when backends are chosen. */
  isOn(provider: string): boolean {
    return this.#open.has(provider)
  }

  /**
   * Runs the first round, then resolves and continues in the background. `onChange` is called on every opening and
   * closing.
   */
  start(onChange: () => void): Promise<void> {
    this.#onChange = onChange
    this.#round = this.#check()
    return this.#round
  }

  /** Closes the gate and stops the checks; resolves when none is running. */
  async close(): Promise<void> {
    this.#isEnded = true
    this.#next?.cancel()
    await this.#round
    await this.#recording
    this.#trust?.cancel()
    this.#open = nobody
  }

  async #check(): Promise<void> {
    const { clock } = this.#deps
    const beganMs = clock.monotonicMs()
    try {
      await this.#judge(await checkReadiness(this.#deps, 'while_on'), beganMs)
    } catch {
      // Whatever the error is: an unreadable switch must not count as on (contract 23.8).
      this.#shut('store_silent', true)
    }
    if (!this.#isEnded) this.#next = clock.after(everyMs, () => void (this.#round = this.#check()))
  }

  async #judge(readiness: ManagedReadiness, beganMs: number): Promise<void> {
    if (this.#isEnded) return
    const failed = failedCheck(readiness)
    if (failed !== undefined) return this.#shut(failed, failed.startsWith('durable'))
    if (this.#open === nobody && !(await this.#mayOpen())) return
    this.#trustFrom(beganMs)
    if (isSame(this.#open, readiness.providers)) return
    this.#open = new Set(readiness.providers)
    this.#onChange()
  }

  /**
   * Whether checks have passed for long enough and the opening is in the audit log: it opens only if that is recorded.
   */
  async #mayOpen(): Promise<boolean> {
    const { store, clock, onEvent } = this.#deps
    if (this.#isEnded || clock.monotonicMs() - this.#failedAtMs < stableMs) return false
    try {
      const { sequence, hash } = await store.appendAudit(
        this.#record({ type: 'managed.opened', reason: 'switched_on' }),
      )
      const [stored] = await store.readAudit(sequence - 1, 1)
      if (stored?.hash !== hash) throw new Error('turning on managed access was not recorded in the audit log')
    } catch {
      this.#shut('durable_audit', true)
      return false
    }
    onEvent({ what: 'opened', reason: 'switched_on' })
    return !this.#isEnded
  }

  #trustFrom(beganMs: number): void {
    this.#trust?.cancel()
    const { clock } = this.#deps
    const leftMs = Math.max(0, trustMs - (clock.monotonicMs() - beganMs))
    this.#trust = clock.after(leftMs, () => this.#shut('store_silent', true))
  }

  #shut(reason: GateReason, isFailure: boolean): void {
    const { store, clock, onEvent } = this.#deps
    this.#trust?.cancel()
    if (isFailure) this.#failedAtMs = clock.monotonicMs()
    if (this.#open === nobody) return
    this.#open = nobody
    this.#onChange()
    onEvent({ what: 'shut', reason })
    // If the audit log itself failed, only the service log records the closing.
    this.#recording = store.appendAudit(this.#record({ type: 'managed.closed', reason })).then(
      () => {},
      (error: unknown) => onEvent({ what: 'unrecorded', reason: errorName(error) }),
    )
  }

  #record(event: AuditEvent): AuditRecord {
    return { actor: { kind: 'system' }, atMs: this.#deps.clock.nowMs(), event }
  }
}

function failedCheck(readiness: ManagedReadiness): GateReason | undefined {
  if (!readiness.switchedOn) return 'switched_off'
  if (readiness.providers.length === 0) return 'resale_controls'
  if (!readiness.durableAudit) return 'durable_audit'
  if (!readiness.durableQuotas) return 'durable_quotas'
  return undefined
}

function isSame(open: ReadonlySet<string>, providers: readonly string[]): boolean {
  return open.size === providers.length && providers.every((provider) => open.has(provider))
}
