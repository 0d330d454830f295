import { type ChainBreak, ChainFollower, type ChainPosition, chainStart } from '../../domain/audit-chain.ts'
import { accountOf, type AuditEntry } from '../../domain/audit.ts'
import { checkCheckpoint, type Checkpoint, type CheckpointKeys, signCheckpoint } from '../../domain/checkpoint.ts'
import type { AuditStore, StoredLink } from '../ports.ts'

/** Entries per read. The event loop runs between two reads, because SQLite answers synchronously. */
const pageEntries = 250
/** How many of the newest checkpoints a verification checks. The newest one alone proves everything before it. */
const maxCheckpoints = 1000

/**
 * The verdict on the log. `intact`: every entry follows from the previous one, and an authentic checkpoint proves the
 * log up to `provenTo`; after that only the hash chain vouches for it. `unproven`: the chain holds, but no checkpoint
 * that can be checked proves that the end of the log was not removed. `broken`: where and why.
 */
export type AuditVerdict =
  | { readonly state: 'intact'; readonly entries: number; readonly provenTo: number }
  | { readonly state: 'unproven'; readonly entries: number }
  | { readonly state: 'broken'; readonly at: ChainBreak }

/** The log was tampered with: nothing may be signed on top of it. */
export class AuditBroken extends Error {
  override readonly name = 'AuditBroken'
  readonly at: ChainBreak

  constructor(at: ChainBreak) {
    super(`the audit log is broken at ${at.sequence}: ${at.why}`)
    this.at = at
  }
}

/** What verifies checkpoints, and further checkpoints that were stored outside the database. */
export interface VerificationOptions {
  readonly keys: CheckpointKeys
  readonly storedElsewhere?: readonly Checkpoint[]
}

/**
 * Verifies the whole log of a database: the chain, the rows around it, the head, and every checkpoint that can be
 * checked.
 */
export async function verifyAudit(
  store: AuditStore,
  { keys, storedElsewhere = [] }: VerificationOptions,
): Promise<AuditVerdict> {
  const checkpoints = [...(await store.listCheckpoints(maxCheckpoints)), ...storedElsewhere]
  const proven = authentic(checkpoints, keys)
  if ('why' in proven) return { state: 'broken', at: proven }
  const follower = new ChainFollower(chainStart, proven)
  const at = (await followToHead(store, follower)) ?? follower.end()
  if (at !== undefined) return { state: 'broken', at }
  return verdictOf(follower.position, proven)
}

/** The verdict on a log that was read to its end without a break. */
export function verdictOf({ sequence }: ChainPosition, proven: readonly Checkpoint[]): AuditVerdict {
  if (proven.length === 0 && sequence > 0) return { state: 'unproven', entries: sequence }
  return { state: 'intact', entries: sequence, provenTo: Math.max(0, ...proven.map((each) => each.sequence)) }
}

/** The checkpoints that can be checked; the break if one of them is forged. */
export function authentic(
  checkpoints: readonly Checkpoint[],
  keys: CheckpointKeys,
): readonly Checkpoint[] | ChainBreak {
  const proven: Checkpoint[] = []
  for (const checkpoint of checkpoints) {
    const kind = checkCheckpoint(keys, checkpoint)
    if (kind === 'forged') return { sequence: checkpoint.sequence, why: 'checkpoint' }
    if (kind === 'authentic') proven.push(checkpoint)
  }
  return proven
}

/**
 * Signs the current end of the log after verifying the entries since the last checkpoint; returns that checkpoint if
 * nothing was added since. Undefined for an empty log. A log that does not continue from `remembered`, the last signed
 * checkpoint as known outside the database, was replaced by another one. @throws AuditBroken, and then nothing is
 * signed
 */
export async function takeCheckpoint(
  store: AuditStore,
  keys: CheckpointKeys,
  nowMs: number,
  remembered?: Checkpoint,
): Promise<Checkpoint | undefined> {
  if (remembered !== undefined) {
    if (checkCheckpoint(keys, remembered) === 'forged')
      throw new AuditBroken({ sequence: remembered.sequence, why: 'checkpoint' })
    await assertMatches(store, remembered)
  }
  const [last] = await store.listCheckpoints(1)
  const kind = last === undefined ? 'unknown_key' : checkCheckpoint(keys, last)
  if (kind === 'forged') throw new AuditBroken({ sequence: last?.sequence ?? 0, why: 'checkpoint' })
  // A checkpoint under an unknown key proves nothing, so verify the whole log.
  const from = last !== undefined && kind === 'authentic' ? last : chainStart
  await assertMatches(store, from)
  const follower = new ChainFollower(from, [])
  const at = await followToHead(store, follower)
  if (at !== undefined) throw new AuditBroken(at)
  const { sequence, hash } = follower.position
  if (sequence === 0 || (last?.sequence === sequence && last.keyId === keys.current.id)) return last
  const checkpoint = signCheckpoint(keys, { sequence, hash }, nowMs)
  await store.addCheckpoint(checkpoint)
  return checkpoint
}

/** The log in order, page by page: up to an entry, or until the first page that is not full. */
export async function* readAll(
  store: AuditStore,
  fromSequence = 0,
  toSequence = Number.MAX_SAFE_INTEGER,
): AsyncGenerator<StoredLink> {
  for (let after = fromSequence; after < toSequence;) {
    const page = await store.readAudit(after, Math.min(pageEntries, toSequence - after))
    yield* page
    const last = page.at(-1)
    // Others may keep appending: waiting for an empty page might never end.
    if (last === undefined || page.length < pageEntries) return
    after = last.sequence
    await new Promise<void>((resolve) => {
      setImmediate(resolve)
    })
  }
}

async function assertMatches(store: AuditStore, { sequence, hash }: ChainPosition): Promise<void> {
  if (sequence === 0) return
  const [link] = await store.readAudit(sequence - 1, 1)
  if (link?.sequence !== sequence) throw new AuditBroken({ sequence, why: 'cut' })
  if (link.hash !== hash) throw new AuditBroken({ sequence, why: 'rewritten' })
}

/** Verifies the stored entries up to the head as it was at the start; entries appended meanwhile are ignored. */
async function followToHead(store: AuditStore, follower: ChainFollower): Promise<ChainBreak | undefined> {
  const head = await store.auditHead()
  for await (const link of readAll(store, follower.position.sequence, head.sequence)) {
    const at = follower.follow(link) ?? misfiled(link)
    if (at !== undefined) return at
  }
  const { sequence, hash } = follower.position
  // The head was read first, so everything up to it was there to be read.
  if (sequence < head.sequence) return { sequence: sequence + 1, why: 'cut' }
  const [beyond] = await store.readAudit(sequence, 1)
  // An entry and its head are written in one transaction, so a head that is read later includes it.
  const isBehind = beyond !== undefined && (await store.auditHead()).sequence < beyond.sequence
  if (isBehind) return { sequence: beyond.sequence, why: 'head' }
  return sequence === head.sequence && hash === head.hash ? undefined : { sequence, why: 'head' }
}

/** Rows are searched by columns next to the entry: they must match the entry. */
function misfiled({ sequence, accountId, entry }: StoredLink): ChainBreak | undefined {
  // The chain was verified, so this is JSON with a sequence number; an event of a newer version may have other members.
  const { sequence: own, event } = JSON.parse(entry) as Pick<AuditEntry, 'sequence' | 'event'>
  return sequence === own && accountId === accountOf(event) ? undefined : { sequence: own, why: 'misfiled' }
}
