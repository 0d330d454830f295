import type { HoldReason } from '../../domain/backend-controls.ts'
import { AccountsError } from '../accounts-error.ts'
import { operatorOf, auditRecord, type AccountsDeps } from '../control-plane.ts'
import type { BackendControlStore } from './backend-ports.ts'

/** The names that the configuration allows for backends. */
const backendShape = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/

/** What commands that drain, quarantine, and release backends need. */
export type BackendControlDeps = AccountsDeps<BackendControlStore>

/** One operator command for a backend. A hold carries a one-word reason. */
export type BackendCommand =
  | { readonly step: 'drained' | 'quarantined'; readonly backend: string; readonly reason: HoldReason }
  | { readonly step: 'undrained' | 'released'; readonly backend: string }

/**
 * Takes a backend out of service or puts it back. Running servers apply it within a second, and running requests finish
 * normally. A release also resets the circuit breakers that servers opened themselves (contract 24.9). @throws
 * AccountsError `operator_only`, `backend_invalid`, `backend_unchanged`
 */
export async function controlBackend(deps: BackendControlDeps, order: BackendCommand): Promise<void> {
  const by = operatorOf(deps.actor)
  const { backend } = order
  if (!backendShape.test(backend)) throw new AccountsError('backend_invalid')
  if (!(await write(deps, order, by))) throw new AccountsError('backend_unchanged')
}

async function write(deps: BackendControlDeps, order: BackendCommand, by: string): Promise<boolean> {
  const { store } = deps
  const { backend } = order
  switch (order.step) {
    case 'undrained':
      return store.undrainBackend(backend, auditRecord(deps, { type: 'backend.undrained', backend }))
    case 'released':
      await store.releaseBackend(backend, by, auditRecord(deps, { type: 'backend.released', backend }))
      return true
    case 'drained':
    case 'quarantined': {
      const { step: kind, reason } = order
      const record = auditRecord(deps, { type: `backend.${kind}`, backend, reason })
      return store.holdBackend({ backendId: backend, kind, atMs: record.atMs, by, reason }, record)
    }
  }
}
