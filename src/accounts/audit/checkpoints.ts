import type { Checkpoint, CheckpointKeys } from '../../domain/checkpoint.ts'
import type { Clock, Timer } from '../../runtime/clock.ts'
import { errorName } from '../../runtime/describe-bug.ts'
import type { AuditStore, CheckpointStore } from '../ports.ts'
import { AuditBroken, takeCheckpoint } from './audit.ts'

/** Entries removed from the end of the log go unnoticed only if they came after the last checkpoint (contract 25.4). */
const everyMs = 60_000

export interface CheckpointsOptions {
  readonly store: AuditStore
  readonly keys: CheckpointKeys
  readonly clock: Clock
  readonly memory: CheckpointStore
  /** Called with each signed checkpoint, for storage outside the database. */
  readonly onSigned: (checkpoint: Checkpoint) => void
  /** Called when a checkpoint cannot be signed, including when the log is broken; the next one is tried as usual. */
  readonly onFailed: (error: unknown) => void
}

/**
 * Signs the current end of the log if it continues from the checkpoint in `memory`, and stores the new checkpoint
 * there. Undefined for an empty log. @throws AuditBroken, and then nothing is signed; what the store and `memory` throw
 */
export async function signRemembered(
  { store, keys, memory }: Pick<CheckpointsOptions, 'store' | 'keys' | 'memory'>,
  nowMs: number,
): Promise<Checkpoint | undefined> {
  const remembered = await memory.read()
  const taken = await takeCheckpoint(store, keys, nowMs, remembered)
  if (taken !== undefined && taken.mac !== remembered?.mac) await memory.keep(taken)
  return taken
}

/** Signs the log now, every minute, and once more when the returned function is called, whenever it has new entries. */
export function startCheckpoints(options: CheckpointsOptions): () => Promise<void> {
  const { store, keys, clock, memory, onSigned, onFailed } = options
  let remembered: Checkpoint | undefined
  let timer: Timer | undefined
  let isEnded = false
  const take = async (): Promise<void> => {
    try {
      remembered ??= await memory.read()
      const taken = await takeCheckpoint(store, keys, clock.nowMs(), remembered)
      if (taken === undefined || taken.mac === remembered?.mac) return
      remembered = taken
      await memory.keep(taken)
      onSigned(taken)
    } catch (error) {
      onFailed(error)
    }
  }
  const go = async (): Promise<void> => {
    await take()
    if (!isEnded) timer = clock.after(everyMs, () => void (signing = go()))
  }
  let signing = go()
  return async () => {
    isEnded = true
    timer?.cancel()
    await signing
    await take()
  }
}

/** The code that names a failure in the service log; never a message. */
export function checkpointFailure(error: unknown): string {
  if (error instanceof AuditBroken) return `broken:${error.at.why}:${error.at.sequence}`
  return errorName(error)
}
