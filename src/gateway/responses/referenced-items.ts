import { invalidRequest, type ServiceError } from '../../domain/errors.ts'
import type { EventLog } from '../../domain/events.ts'
import type { JsonObject } from '../../domain/json.ts'
import { itemDigest } from '../../domain/stored-responses.ts'
import { responseIdOf, withIds } from '../../formats/openai-responses/stored-items.ts'
import type { Sealer } from '../../runtime/sealer.ts'
import type { RequestWork } from '../auth/unadmitted-work.ts'
import { readItems } from './encrypted-texts.ts'
import type { ResponseStore } from './response-store.ts'

/** Items that one request may reference (contract 12.13). */
export const maxReferences = 1_000
/** An item that was sent repeatedly is in as many answers: at most this many, the newest, are searched. */
const maxLocations = 5_000

interface FindItemsDeps {
  /** Encrypted text of stored answers that one request may decrypt, bytes (contract 29.6). */
  readonly maxOpenedBytes: number
  readonly store: ResponseStore
  readonly sealer: Sealer
  readonly log: EventLog
}

/**
 * The account's items with these ids, by id; missing ones are left out. An item is stored in the answer that created
 * it and in every later request that repeated it, so the fewest answers that hold all items are decrypted, newest
 * first.
 * @throws ServiceError `invalid_request` if these exceed the limit; errors of `work`
 */
export async function findItems(
  deps: FindItemsDeps,
  accountId: string,
  ids: ReadonlySet<string>,
  sinceMs: number,
  work: RequestWork | undefined,
): Promise<ReadonlyMap<string, JsonObject>> {
  const idOf = new Map(Array.from(ids, (id) => [itemDigest(accountId, id), id]))
  const holders = new Set<string>()
  const covered = new Set<string>()
  const locations = await deps.store.locations(accountId, [...idOf.keys()], sinceMs, maxLocations)
  for (const [responseId, digests] of grouped(locations)) {
    if (digests.every((digest) => covered.has(digest))) continue
    holders.add(responseId)
    for (const digest of digests) covered.add(digest)
  }
  for (const [digest, id] of idOf) {
    const owner = covered.has(digest) ? undefined : responseIdOf(id)
    if (owner !== undefined) holders.add(owner)
  }
  const found = new Map<string, JsonObject>()
  let opened = 0
  for (const responseId of holders) {
    const stored = await deps.store.find(accountId, responseId, sinceMs)
    if (stored === undefined) continue
    const bytes = stored.sealedInput.length + stored.sealedOutput.length
    opened += bytes
    if (opened > deps.maxOpenedBytes) throw tooMuch(deps.maxOpenedBytes)
    work?.spend(bytes)
    const input = withIds(await readItems(deps, accountId, responseId, 'input', stored.sealedInput), responseId)
    const output = await readItems(deps, accountId, responseId, 'output', stored.sealedOutput)
    for (const item of [...output, ...input]) {
      const id = item['id']
      if (typeof id === 'string' && ids.has(id) && !found.has(id)) found.set(id, item)
    }
  }
  return found
}

function grouped(
  locations: readonly { readonly digest: string; readonly responseId: string }[],
): ReadonlyMap<string, readonly string[]> {
  const groups = new Map<string, string[]>()
  for (const { digest, responseId } of locations) {
    const group = groups.get(responseId)
    if (group === undefined) groups.set(responseId, [digest])
    else group.push(digest)
  }
  return groups
}

function tooMuch(bytes: number): ServiceError {
  const size = Math.floor(bytes / 1024 / 1024)
  return invalidRequest(
    'input',
    `The stored responses that input refers to are larger than ${size} MiB. Send the items themselves.`,
  )
}
