import { checkpointFailure, startCheckpoints } from '../accounts/audit/checkpoints.ts'
import { ManagedAccessGate } from '../accounts/managed-access/managed-access-gate.ts'
import type { AuditStore } from '../accounts/ports.ts'
import { checkpointKeys } from '../domain/checkpoint.ts'
import type { ManagedAccess } from '../gateway/ports.ts'
import { checkpointFile } from '../storage/checkpoint-file.ts'
import type { Runtime } from './runtime.ts'
import type { Storage } from './storage.ts'

/** Signs the audit log and checks the conditions of managed access while the service runs. */
export interface BackgroundChecks extends AsyncDisposable {
  readonly managed: ManagedAccess
  /** Calls `onManagedChange` whenever managed access turns on or off. */
  start(onManagedChange: () => void): Promise<void>
  /** Begins to check managed access if operators declared the first managed backend. */
  settingsChanged(): Promise<void>
}

/** Signs the audit log while the service runs. Call the result to end it. */
export function startAuditCheckpoints({ config, keys, clock, log }: Runtime, store: AuditStore): () => Promise<void> {
  return startCheckpoints({
    store,
    keys: checkpointKeys(keys),
    clock,
    memory: checkpointFile(config.dataDir),
    onSigned: ({ sequence, hash }) => log({ event: 'audit_checkpoint', sequence, hash }),
    onFailed: (error) => log({ event: 'audit_failing', reason: checkpointFailure(error) }),
  })
}

/**
 * Creates the checks without starting them. Managed access is checked only if the configuration has managed backends.
 */
export function openBackgroundChecks(runtime: Runtime, storage: Storage): BackgroundChecks {
  const { served, clock, log } = runtime
  const { store } = storage
  const gate = new ManagedAccessGate({
    store,
    proveQuotas: () => storage.proveQuotas(),
    clock,
    onEvent: (event) => log({ event: 'managed_access', ...event }),
  })
  let endCheckpoints = async (): Promise<void> => {}
  let startGate = async (): Promise<void> => {}
  let isGateStarted = false
  return {
    managed: gate,
    settingsChanged: () => startGate(),
    async start(onManagedChange) {
      if (!storage.isOwnedElsewhere) endCheckpoints = startAuditCheckpoints(runtime, store)
      startGate = async () => {
        if (isGateStarted || !served.backends.some(({ managed }) => managed)) return
        isGateStarted = true
        await gate.start(onManagedChange)
      }
      await startGate()
    },
    async [Symbol.asyncDispose]() {
      await gate.close()
      await endCheckpoints()
    },
  }
}
