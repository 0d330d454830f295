import type { RequestSweepOptions } from './request-sweep.ts'
import type { RetainedConversations } from './conversation-store.ts'
import type { RetainedResponses } from './response-store.ts'
import { startSweep } from './sweep.ts'

/** With the pause between two chunks 2,000 answers a second. */
const chunkRows = 200

/**
 * Deletes stored answers or conversations that are older than they are kept, for as long as it runs; gives what ends it. With a retention
 * of 0 nothing is kept, and what was kept before goes too (contract 12.2).
 */
export function startResponseSweep(
  store: Pick<RetainedResponses | RetainedConversations, 'deleteUntil'>,
  { retentionMs, clock, onFailed }: RequestSweepOptions,
): () => void {
  const deleteOld = (nowMs: number, rows: number): Promise<number> => store.deleteUntil(nowMs - retentionMs, rows)
  return startSweep({ deleteOld, chunkRows, clock, onFailed })
}
