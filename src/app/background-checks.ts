import { checkpointFailure, startCheckpoints } from '../accounts/audit/checkpoints.ts'
import { ManagedAccessGate } from '../accounts/managed-access/managed-access-gate.ts'
import type { Config } from '../config/config.ts'
import { sealingKeys } from '../config/sealing-keys.ts'
import { checkpointKeys } from '../domain/checkpoint.ts'
import type { Clock } from '../runtime/clock.ts'
import type { EventLog } from '../domain/events.ts'
import type { ManagedAccess } from '../gateway/ports.ts'
import type { Storage } from './storage.ts'
import { checkpointFile } from '../storage/checkpoint-file.ts'

/** What watches over the service while it runs: the audit log is signed, and managed access is checked. */
export interface BackgroundChecks extends AsyncDisposable {
  readonly managed: ManagedAccess
  /** `onManagedChange` hears of each time that managed access opens or shuts. */
  start(onManagedChange: () => void): Promise<void>
}

export interface BackgroundChecksDeps {
  readonly storage: Storage
  readonly clock: Clock
  readonly log: EventLog
}

/** Makes the guard; nothing runs before it is started. Without managed backends nothing is checked for them. */
export function openBackgroundChecks(config: Config, { storage, clock, log }: BackgroundChecksDeps): BackgroundChecks {
  const { store } = storage
  const gate = new ManagedAccessGate({
    store,
    proveQuotas: () => storage.proveQuotas(),
    clock,
    onEvent: (event) => log({ event: 'managed_access', ...event }),
  })
  let endCheckpoints = async (): Promise<void> => {}
  return {
    managed: gate,
    async start(onManagedChange) {
      endCheckpoints = startCheckpoints({
        store,
        keys: checkpointKeys(sealingKeys(config.secrets)),
        clock,
        memory: checkpointFile(config.dataDir),
        onSigned: ({ sequence, hash }) => log({ event: 'audit_checkpoint', sequence, hash }),
        onFailed: (error) => log({ event: 'audit_failing', reason: checkpointFailure(error) }),
      })
      if (config.backends.some(({ managed }) => managed)) await gate.start(onManagedChange)
    },
    async [Symbol.asyncDispose]() {
      await gate.close()
      await endCheckpoints()
    },
  }
}
