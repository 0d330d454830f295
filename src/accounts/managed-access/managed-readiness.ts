import type { AuditRecord } from '../../domain/audit.ts'
import type { ManagedReadiness } from '../../domain/managed-access.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { AuditStore, ManagedAccessStore } from '../ports.ts'

/** A check that takes longer counts as failed. */
const proofMs = 500
/** The checks write to disk, so their result is reused for this long. */
const recentMs = 5_000

/** What the live checks of contract 23.3 need. */
export interface ReadinessDeps {
  readonly store: Pick<ManagedAccessStore, 'managedAccess'> & Pick<AuditStore, 'proveAudit'>
  /** Rejects if a write to the quotas cannot be read back over a new connection. */
  readonly proveQuotas: () => Promise<void>
  readonly clock: Clock
}

/**
 * Runs the three checks, each by performing the operation it checks. With `while_on` and the switch off it runs none
 * and reports none as passed. Rejects if the store does not answer.
 */
export async function checkReadiness(deps: ReadinessDeps, when: 'always' | 'while_on'): Promise<ManagedReadiness> {
  const { store, proveQuotas, clock } = deps
  const { switchedOn, controls } = await inTime(clock, store.managedAccess())
  const providers = controls.filter(({ revokedAtMs }) => revokedAtMs === null).map(({ provider }) => provider)
  if (!switchedOn && when === 'while_on') return { switchedOn, providers, durableQuotas: false, durableAudit: false }
  const record: AuditRecord = { actor: { kind: 'system' }, atMs: clock.nowMs(), event: { type: 'audit.proved' } }
  const durableAudit = await holds(clock, store.proveAudit(record))
  const durableQuotas = await holds(clock, proveQuotas())
  return { switchedOn, providers, durableQuotas, durableAudit }
}

/** The switch and the three checks, at most a few seconds old. */
export function recentReadiness(deps: ReadinessDeps): () => Promise<ManagedReadiness> {
  let last: { readonly found: Promise<ManagedReadiness>; readonly atMs: number } | undefined
  return () => {
    const nowMs = deps.clock.monotonicMs()
    if (last === undefined || nowMs - last.atMs >= recentMs) {
      const found = checkReadiness(deps, 'always')
      found.catch(() => {
        last = undefined
      })
      last = { found, atMs: nowMs }
    }
    return last.found
  }
}

function holds(clock: Clock, proof: Promise<unknown>): Promise<boolean> {
  return inTime(clock, proof).then(
    () => true,
    () => false,
  )
}

function inTime<Value>(clock: Clock, answer: Promise<Value>): Promise<Value> {
  return new Promise((resolve, reject) => {
    const timer = clock.after(proofMs, () => reject(new Error('a check took too long')))
    answer.then(resolve, reject).finally(() => timer.cancel())
  })
}
