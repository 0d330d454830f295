import type { RetainedConversations } from '../conversations.ts'
import type { ResponseList } from '../responses.ts'
import type { RequestSweepOptions } from './request-sweep.ts'
import { startSweep } from './sweep.ts'

/** With the pause between chunks, 2,000 answers a second. */
const chunkRows = 200

/**
 * Deletes stored answers or conversations older than their retention; returns a function that stops it. With a
 * retention of 0 nothing is stored, and existing data is deleted too (contract 12.2).
 */
export function startResponseSweep(
  store: Pick<ResponseList | RetainedConversations, 'deleteUntil'>,
  { retentionMs, clock, onFailed }: RequestSweepOptions,
): () => void {
  const deleteOld = (nowMs: number, rows: number): Promise<number> => store.deleteUntil(nowMs - retentionMs, rows)
  return startSweep({ deleteOld, chunkRows, clock, onFailed })
}
