import { failureName } from '../domain/bugs.ts'
import type { AuditEvent, AuditRecord, GateReason } from '../domain/audit.ts'
import type { Timer } from '../domain/clock.ts'
import type { ManagedReadiness } from '../domain/managed-access.ts'
import { checkReadiness, type ReadinessNeeds } from './managed-readiness.ts'
import type { AuditStore } from './ports.ts'

/** Between two rounds of checks (contract 23.4). */
const everyMs = 400
/** Without a round that held and began this recently the gate is shut: a check that hangs is one that fails. */
const trustMs = 900
/** After a check has failed they must all hold for this long before the gate opens again, so that it does not flap (contract 23.4). */
const calmMs = 10_000

export interface GateNeeds extends ReadinessNeeds {
  readonly store: ReadinessNeeds['store'] & Pick<AuditStore, 'appendAudit' | 'readAudit'>
  /** Told why it opened or shut, and of an event about that which could not be appended. */
  readonly onEvent: (event: GateEvent) => void
}

/** What happened at the gate: for the log. */
export type GateEvent =
  | { readonly what: 'opened' | 'shut'; readonly reason: GateReason }
  | { readonly what: 'unrecorded'; readonly reason: string }

const nobody: ReadonlySet<string> = new Set()

/**
 * The live gate of managed access (contract 23.3): open for a provider only while the operator's switch is on and all
 * three checks hold, made more than twice a second; shut within a second of any that fails. While the switch is off it
 * only looks at the switch.
 */
export class ManagedAccessGate {
  readonly #needs: GateNeeds
  #onChange: () => void = () => {}
  #open = nobody
  #failedAtMs = Number.NEGATIVE_INFINITY
  #next: Timer | undefined
  #trust: Timer | undefined
  #round: Promise<void> = Promise.resolve()
  #recording: Promise<void> = Promise.resolve()
  #isEnded = false

  constructor(needs: GateNeeds) {
    this.#needs = needs
  }

  /** Whether managed backends of a provider may serve now; asked where backends are chosen. */
  isOn(provider: string): boolean {
    return this.#open.has(provider)
  }

  /** Makes the first round and goes on with the others; resolves after the first. `onChange` hears of each opening and shutting at once. */
  start(onChange: () => void): Promise<void> {
    this.#onChange = onChange
    this.#round = this.#check()
    return this.#round
  }

  /** Shuts it and ends the checks; resolves when none is under way. */
  async close(): Promise<void> {
    this.#isEnded = true
    this.#next?.cancel()
    await this.#round
    await this.#recording
    this.#trust?.cancel()
    this.#open = nobody
  }

  async #check(): Promise<void> {
    const { clock } = this.#needs
    const beganMs = clock.monotonicMs()
    try {
      await this.#judge(await checkReadiness(this.#needs, 'while_on'), beganMs)
    } catch {
      // Whatever it is: who cannot read the switch must not take it for on.
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

  /** Calm for long enough, and the opening is in the log: what cannot be recorded is not done. */
  async #mayOpen(): Promise<boolean> {
    const { store, clock, onEvent } = this.#needs
    if (this.#isEnded || clock.monotonicMs() - this.#failedAtMs < calmMs) return false
    try {
      const { sequence, hash } = await store.appendAudit(
        this.#record({ type: 'managed.opened', reason: 'switched_on' }),
      )
      const [kept] = await store.readAudit(sequence - 1, 1)
      if (kept?.hash !== hash) throw new Error('the opening is not in the log')
    } catch {
      this.#shut('durable_audit', true)
      return false
    }
    onEvent({ what: 'opened', reason: 'switched_on' })
    return !this.#isEnded
  }

  #trustFrom(beganMs: number): void {
    this.#trust?.cancel()
    const { clock } = this.#needs
    const leftMs = Math.max(0, trustMs - (clock.monotonicMs() - beganMs))
    this.#trust = clock.after(leftMs, () => this.#shut('store_silent', true))
  }

  #shut(reason: GateReason, isFailure: boolean): void {
    const { store, clock, onEvent } = this.#needs
    this.#trust?.cancel()
    if (isFailure) this.#failedAtMs = clock.monotonicMs()
    if (this.#open === nobody) return
    this.#open = nobody
    this.#onChange()
    onEvent({ what: 'shut', reason })
    // Where the log itself has failed there is only the line of the service's log.
    this.#recording = store.appendAudit(this.#record({ type: 'managed.closed', reason })).then(
      () => {},
      (error: unknown) => onEvent({ what: 'unrecorded', reason: failureName(error) }),
    )
  }

  #record(event: AuditEvent): AuditRecord {
    return { actor: { kind: 'system' }, atMs: this.#needs.clock.nowMs(), event }
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
