import type { JsonObject } from '../domain/conversation.ts'
import { invalidRequest, type ServiceError } from '../domain/errors.ts'
import type { EventLog } from '../domain/events.ts'
import type { Sealer } from '../domain/sealing.ts'
import { itemDigest } from '../domain/stored-responses.ts'
import { responseIdOf, withIds } from '../formats/openai-responses/stored-items.ts'
import type { ResponseStore } from './response-store.ts'
import { readItems } from './sealed-texts.ts'
import type { RequestWork } from './unadmitted-work.ts'

/** Items that one request may refer to. */
export const maxReferences = 1_000
/** An item that was told again and again stands in as many answers: the newest of these are looked at. */
const maxPlaces = 5_000

interface FindParts {
  /** Sealed text of stored answers that one request may have opened, bytes. */
  readonly maxOpenedBytes: number
  readonly store: ResponseStore
  readonly sealer: Sealer
  readonly log: EventLog
}

/**
 * The account's own items of these ids, by id; those that are not there are left out. An item stands in the answer that
 * made it and in every later request that told it again, so the fewest answers that hold all are opened, newest first.
 * @throws ServiceError `invalid_request` where these hold more than may be opened; what `work` throws
 */
export async function findItems(
  parts: FindParts,
  accountId: string,
  ids: ReadonlySet<string>,
  sinceMs: number,
  work: RequestWork | undefined,
): Promise<ReadonlyMap<string, JsonObject>> {
  const idOf = new Map(Array.from(ids, (id) => [itemDigest(accountId, id), id]))
  const holders = new Set<string>()
  const covered = new Set<string>()
  const places = await parts.store.places(accountId, [...idOf.keys()], sinceMs, maxPlaces)
  for (const [responseId, digests] of grouped(places)) {
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
    const stored = await parts.store.find(accountId, responseId, sinceMs)
    if (stored === undefined) continue
    const bytes = stored.sealedInput.length + stored.sealedOutput.length
    opened += bytes
    if (opened > parts.maxOpenedBytes) throw tooMuch(parts.maxOpenedBytes)
    work?.spend(bytes)
    const input = withIds(await readItems(parts, accountId, responseId, 'input', stored.sealedInput), responseId)
    const output = await readItems(parts, accountId, responseId, 'output', stored.sealedOutput)
    for (const item of [...output, ...input]) {
      const id = item['id']
      if (typeof id === 'string' && ids.has(id) && !found.has(id)) found.set(id, item)
    }
  }
  return found
}

function grouped(
  places: readonly { readonly digest: string; readonly responseId: string }[],
): ReadonlyMap<string, readonly string[]> {
  const groups = new Map<string, string[]>()
  for (const { digest, responseId } of places) {
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
    `The stored responses that input refers to hold more than ${size} MiB. Send the items themselves.`,
  )
}
