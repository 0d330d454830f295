import { accountOf, type AuditEntry } from '../domain/audit.ts'
import { type ChainBreak, ChainFollower, type ChainPosition, chainStart } from '../domain/audit-chain.ts'
import { checkCheckpoint, type Checkpoint, type CheckpointKeys, signCheckpoint } from '../domain/checkpoint.ts'
import type { AuditStore, StoredLink } from './ports.ts'

/** Entries read at once; between two reads the event loop goes round, because SQLite answers without waiting. */
const pageEntries = 250
/** The newest checkpoints that a verification looks at: the newest alone proves everything before it. */
const maxCheckpoints = 1000

/**
 * What a verification found. `intact`: every entry follows from the one before, and an authentic checkpoint proves the
 * log up to `provenTo`; behind that the chain alone speaks. `unproven`: the chain holds, and nothing shows that its end
 * is its end: no checkpoint was given, or none that can be checked. `broken`: where and why.
 */
export type AuditVerdict =
  | { readonly state: 'intact'; readonly entries: number; readonly provenTo: number }
  | { readonly state: 'unproven'; readonly entries: number }
  | { readonly state: 'broken'; readonly at: ChainBreak }

/** The log is not what it was: nothing may be signed on top of it. */
export class AuditBroken extends Error {
  override readonly name = 'AuditBroken'
  readonly at: ChainBreak

  constructor(at: ChainBreak) {
    super(`the audit log is broken at ${at.sequence}: ${at.why}`)
    this.at = at
  }
}

/** What verifies checkpoints, and more of them than the database has: those that were kept elsewhere. */
export interface VerificationNeeds {
  readonly keys: CheckpointKeys
  readonly keptElsewhere?: readonly Checkpoint[]
}

/** Verifies the whole log of a database: the chain, the rows around it, the head, and every checkpoint that can be checked. */
export async function verifyAudit(
  store: AuditStore,
  { keys, keptElsewhere = [] }: VerificationNeeds,
): Promise<AuditVerdict> {
  const checkpoints = [...(await store.listCheckpoints(maxCheckpoints)), ...keptElsewhere]
  const proven = authentic(checkpoints, keys)
  if ('why' in proven) return { state: 'broken', at: proven }
  const follower = new ChainFollower(chainStart, proven)
  const at = (await followToHead(store, follower)) ?? follower.end()
  if (at !== undefined) return { state: 'broken', at }
  return verdictOf(follower.position, proven)
}

/** The verdict on a log that was followed to its end without a break. */
export function verdictOf({ sequence }: ChainPosition, proven: readonly Checkpoint[]): AuditVerdict {
  if (proven.length === 0 && sequence > 0) return { state: 'unproven', entries: sequence }
  return { state: 'intact', entries: sequence, provenTo: Math.max(0, ...proven.map((each) => each.sequence)) }
}

/** The checkpoints that can be checked; the break where one of them is forged. */
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
 * Signs the log as it stands, after following it on from the last checkpoint; gives that one where nothing has come
 * since. Undefined for an empty log. A log that does not go on from `remembered`, the last checkpoint that was signed as
 * it is known outside the database, was replaced by another one. @throws AuditBroken, and then nothing is signed
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
    await assertStands(store, remembered)
  }
  const [last] = await store.listCheckpoints(1)
  const kind = last === undefined ? 'unknown_key' : checkCheckpoint(keys, last)
  if (kind === 'forged') throw new AuditBroken({ sequence: last?.sequence ?? 0, why: 'checkpoint' })
  // Under a key that is not known any more it proves nothing: then the whole log is followed.
  const from = last !== undefined && kind === 'authentic' ? last : chainStart
  await assertStands(store, from)
  const follower = new ChainFollower(from, [])
  const at = await followToHead(store, follower)
  if (at !== undefined) throw new AuditBroken(at)
  const { sequence, hash } = follower.position
  if (sequence === 0 || (last?.sequence === sequence && last.keyId === keys.current.id)) return last
  const checkpoint = signCheckpoint(keys, { sequence, hash }, nowMs)
  await store.addCheckpoint(checkpoint)
  return checkpoint
}

/** The log in its order, page after page: what there is up to an entry, or without one until a page is not full any more. */
export async function* readAll(
  store: AuditStore,
  fromSequence = 0,
  toSequence = Number.MAX_SAFE_INTEGER,
): AsyncGenerator<StoredLink> {
  for (let after = fromSequence; after < toSequence;) {
    const page = await store.readAudit(after, Math.min(pageEntries, toSequence - after))
    yield* page
    const last = page.at(-1)
    // Others may append all the while: to wait for an empty page might be to wait for ever.
    if (last === undefined || page.length < pageEntries) return
    after = last.sequence
    await new Promise<void>((resolve) => {
      setImmediate(resolve)
    })
  }
}

async function assertStands(store: AuditStore, { sequence, hash }: ChainPosition): Promise<void> {
  if (sequence === 0) return
  const [link] = await store.readAudit(sequence - 1, 1)
  if (link?.sequence !== sequence) throw new AuditBroken({ sequence, why: 'cut' })
  if (link.hash !== hash) throw new AuditBroken({ sequence, why: 'rewritten' })
}

/** Follows what is stored to the head that is kept beside it, as it stands at the beginning: what is appended meanwhile is not waited for. */
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
  // An entry and its head come in one transaction: a head that is read later knows of it.
  const isBehind = beyond !== undefined && (await store.auditHead()).sequence < beyond.sequence
  if (isBehind) return { sequence: beyond.sequence, why: 'head' }
  return sequence === head.sequence && hash === head.hash ? undefined : { sequence, why: 'head' }
}

/** A row is found by values that stand beside its entry: they must be the entry's. */
function misfiled({ sequence, accountId, entry }: StoredLink): ChainBreak | undefined {
  // It was followed, so it is JSON and has a number; the event of a newer version may have other members.
  const { sequence: own, event } = JSON.parse(entry) as Pick<AuditEntry, 'sequence' | 'event'>
  return sequence === own && accountId === accountOf(event) ? undefined : { sequence: own, why: 'misfiled' }
}
