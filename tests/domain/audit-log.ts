import { chainHash, type ChainLink, chainStart } from '../../src/domain/audit-chain.ts'
import type { AuditEvent, AuditRecord } from '../../src/domain/audit.ts'
import { writeEntry } from '../../src/domain/audit.ts'
import { checkpointKeys, type CheckpointKeys } from '../../src/domain/checkpoint.ts'
import { Secret } from '../../src/runtime/secret.ts'

/** Keys of checkpoints from made-up sealing keys. */
export function madeUpKeys(current = 1, previous?: number): CheckpointKeys {
  const key = (fill: number) => ({ id: `key${fill}`, key: new Secret<Uint8Array>(new Uint8Array(32).fill(fill)) })
  return checkpointKeys({ current: key(current), previous: previous === undefined ? undefined : key(previous) })
}

/** A numbered event, of several kinds in turn. */
function eventOf(index: number): AuditEvent {
  const accountId = `acc_${index % 7}`
  const events: readonly AuditEvent[] = [
    { type: 'key.created', accountId, keyId: `key_${index}` },
    { type: 'account.plan_changed', accountId, planId: index % 2 === 0 ? 'pro' : 'max' },
    { type: 'key.rotated', accountId, keyId: `key_${index}`, nextKeyId: `key_${index + 1}`, endsAtMs: index * 1000 },
    { type: 'managed.switched_on' },
  ]
  return events[index % events.length]!
}

export function recordAt(index: number): AuditRecord {
  return { actor: { kind: 'cli' }, atMs: 1_700_000_000_000 + index, event: eventOf(index) }
}

/** A log of that many entries, chained from one place on. */
export function chainOf(count: number, from = chainStart): ChainLink[] {
  const links: ChainLink[] = []
  let { hash } = from
  for (let index = 1; index <= count; index++) {
    const entry = writeEntry({ sequence: from.sequence + index, ...recordAt(index) })
    hash = chainHash(hash, entry)
    links.push({ entry, hash })
  }
  return links
}

/** The same entries with hashes made again from the start: what a forger does who has no key. */
export function rehashed(links: readonly ChainLink[]): ChainLink[] {
  let hash = chainStart.hash
  return links.map(({ entry }) => ({ entry, hash: (hash = chainHash(hash, entry)) }))
}
