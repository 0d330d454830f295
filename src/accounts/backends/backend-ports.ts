import type { AuditRecord } from '../../domain/audit.ts'
import type { BackendControl, HoldKind } from '../../domain/backend-controls.ts'

/**
 * Operators' decisions about backends. Every change increments the revision, so that running servers read it
 * immediately.
 */
export interface BackendControlStore {
  listBackendControls(): Promise<readonly BackendControl[]>
  /** Drains or quarantines a backend; false if that hold is already set. */
  holdBackend(control: BackendControl & { readonly kind: HoldKind }, record: AuditRecord): Promise<boolean>
  /** Ends a drain; false if there is none. */
  undrainBackend(backendId: string, record: AuditRecord): Promise<boolean>
  /** Ends a quarantine, if there is one, and stores the time for servers that opened a circuit breaker themselves. */
  releaseBackend(backendId: string, by: string, record: AuditRecord): Promise<void>
}
