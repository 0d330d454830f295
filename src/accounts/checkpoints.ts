import { failureName } from '../domain/bugs.ts'
import type { Checkpoint, CheckpointKeys } from '../domain/checkpoint.ts'
import type { Clock, Timer } from '../domain/clock.ts'
import { AuditBroken, takeCheckpoint } from './audit.ts'
import type { AuditStore, CheckpointMemory } from './ports.ts'

/** What is lost of the log's end without a trace is at most what came since the last checkpoint (contract 25.4). */
const everyMs = 60_000

export interface CheckpointsOptions {
  readonly store: AuditStore
  readonly keys: CheckpointKeys
  readonly clock: Clock
  readonly memory: CheckpointMemory
  /** Told of each that was signed, for a log that is kept elsewhere. */
  readonly onSigned: (checkpoint: Checkpoint) => void
  /** Told of each that could not be taken, and where the log is broken if that is why; the next one is tried as usual. */
  readonly onFailed: (error: unknown) => void
}

/**
 * Signs the log as it stands, where it goes on from the checkpoint in `memory`, and keeps the new one there. Undefined
 * for an empty log. @throws AuditBroken, and then nothing is signed; what store and memory throw
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

/** Signs the log at once, each minute and, by what it gives, at the end, for as long as there is anything new in it. */
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
    if (!isEnded) timer = clock.after(everyMs, () => void (taking = go()))
  }
  let taking = go()
  return async () => {
    isEnded = true
    timer?.cancel()
    await taking
    await take()
  }
}

/** How a failure is named in the log: a code, never a text. */
export function checkpointFailure(error: unknown): string {
  if (error instanceof AuditBroken) return `broken:${error.at.why}:${error.at.sequence}`
  return failureName(error)
}
