import type { Kysely } from 'kysely'
import { responseIdFor } from '../../src/domain/stored-responses.ts'
import { createResponseStore } from '../../src/storage/response-store.ts'
import type { Tables } from '../../src/storage/schema/schema.ts'

/** Stores an answer to a request, as its process does before it delivers it. */
export async function storeAnswer(db: Kysely<Tables>, requestId: string): Promise<void> {
  const id = responseIdFor(requestId)
  const texts = { sealedResponse: 'r', sealedInput: 'i', sealedOutput: 'o' }
  const answer = { id, accountId: 'acc_1', previousId: undefined, createdAtMs: 1, links: 1, chainBytes: 1, ...texts }
  await createResponseStore(db).save(answer, [`digest of ${id}`])
}

/** Whether the answer to a request and its items are stored. */
export async function hasAnswer(db: Kysely<Tables>, requestId: string): Promise<boolean> {
  const store = createResponseStore(db)
  const id = responseIdFor(requestId)
  const found = await store.find('acc_1', id, 0)
  const items = await db.selectFrom('stored_items').select('digest').where('response_id', '=', id).execute()
  if ((found === undefined) !== (items.length === 0))
    throw new Error('an answer without items, or items without an answer')
  return found !== undefined
}
