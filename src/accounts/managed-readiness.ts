import type { AuditRecord } from '../domain/audit.ts'
import type { Clock } from '../domain/clock.ts'
import type { ManagedReadiness } from '../domain/managed-access.ts'
import type { AuditStore, ManagedAccessStore } from './ports.ts'

/** A proof that takes longer is none. */
const proofMs = 500
/** The checks write to the disk: however many look at a page, they are made once in this time. */
const recentMs = 5_000

/** What the live checks of contract 23.3 are made with. */
export interface ReadinessNeeds {
  readonly store: Pick<ManagedAccessStore, 'managedAccess'> & Pick<AuditStore, 'proveAudit'>
  /** Rejects where a write to the quotas is not found again behind a fresh connection. */
  readonly proveQuotas: () => Promise<void>
  readonly clock: Clock
}

/**
 * Makes the three checks now, each by doing what it asks. `while_on` proves nothing, and so says nothing is proven, while
 * the switch is off. Rejects where the store does not answer.
 */
export async function checkReadiness(needs: ReadinessNeeds, when: 'always' | 'while_on'): Promise<ManagedReadiness> {
  const { store, proveQuotas, clock } = needs
  const { switchedOn, controls } = await inTime(clock, store.managedAccess())
  const providers = controls.filter(({ revokedAtMs }) => revokedAtMs === null).map(({ provider }) => provider)
  if (!switchedOn && when === 'while_on') return { switchedOn, providers, durableQuotas: false, durableAudit: false }
  const record: AuditRecord = { actor: { kind: 'system' }, atMs: clock.nowMs(), event: { type: 'audit.proved' } }
  const durableAudit = await holds(clock, store.proveAudit(record))
  const durableQuotas = await holds(clock, proveQuotas())
  return { switchedOn, providers, durableQuotas, durableAudit }
}

/** The switch and the three checks as they stood a few seconds ago at most. */
export function recentReadiness(needs: ReadinessNeeds): () => Promise<ManagedReadiness> {
  let last: { readonly found: Promise<ManagedReadiness>; readonly atMs: number } | undefined
  return () => {
    const nowMs = needs.clock.monotonicMs()
    if (last === undefined || nowMs - last.atMs >= recentMs) {
      const found = checkReadiness(needs, 'always')
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
