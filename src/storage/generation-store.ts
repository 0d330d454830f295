import type { Kysely } from 'kysely'
import type { GenerationChunk } from '../gateway/generations/generation-store.ts'
import { compareText } from '../runtime/compare-text.ts'
import { appendChunks, type GenerationList, generationQueries } from './generations.ts'
import { GroupedWrites } from './grouped-writes.ts'
import type { Tables } from './schema/schema.ts'

const maxBatchBytes = 512 * 1024
const maxBatchChunks = 64

/**
 * Implements the port on one open database. Chunks that arrive during a write share the next transaction. Each
 * generation has at most one chunk on its way, which bounds what waits.
 */
export function createGenerationStore(db: Kysely<Tables>): GenerationList {
  const appends = new GroupedWrites<GenerationChunk, boolean>({
    write: (chunks) => appendChunks(db, chunks),
    bytesOf: ({ sealed }) => sealed?.length ?? 0,
    // Every node locks generations in the same order.
    order: (one, other) => compareText(one.requestId, other.requestId),
    maxItems: maxBatchChunks,
    maxBytes: maxBatchBytes,
  })
  return { ...generationQueries(db), append: (chunk) => appends.add(chunk) }
}
