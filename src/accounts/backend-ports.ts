import type { AuditRecord } from '../domain/audit.ts'
import type { BackendControl, HoldKind } from '../domain/backend-controls.ts'

/** What operators said of backends. Every change moves the revision, so that running servers read it at once. */
export interface BackendControlStore {
  listBackendControls(): Promise<readonly BackendControl[]>
  /** Holds a backend; false where it is held in this way already. */
  holdBackend(control: BackendControl & { readonly kind: HoldKind }, record: AuditRecord): Promise<boolean>
  /** Ends a drain; false where there is none. */
  undrainBackend(backendId: string, record: AuditRecord): Promise<boolean>
  /** Ends a quarantine, where there is one, and keeps the moment for the servers that decided one by themselves. */
  releaseBackend(backendId: string, by: string, record: AuditRecord): Promise<void>
}
