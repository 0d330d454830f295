import { checkSignature, deriveMacKeys, type MacKeys, signText } from '../runtime/mac.ts'
import type { SealingKeys } from '../runtime/sealer.ts'
import type { ChainPosition } from './audit-chain.ts'
import { isCount, parseObject } from './json.ts'

const version = 1
const derivedFor = 'svc-router audit checkpoint v1'

/**
 * Proves the position of the log at a point in time. A copy that is stored elsewhere reveals if earlier entries were
 * changed or removed later. Creating one requires the sealing key.
 */
export interface Checkpoint extends ChainPosition {
  readonly atMs: number
  /** The id of the key that `mac` was computed with. */
  readonly keyId: string
  /** HMAC-SHA-256 in base64url. */
  readonly mac: string
}

/** The keys that sign checkpoints, derived from the sealing keys and used for nothing else. */
export type CheckpointKeys = MacKeys

/** Derives the keys that sign checkpoints from the sealing keys. */
export function checkpointKeys(keys: SealingKeys): CheckpointKeys {
  return deriveMacKeys(keys, derivedFor)
}

/** Signs a position of the log with the current key. */
export function signCheckpoint({ current }: CheckpointKeys, at: ChainPosition, atMs: number): Checkpoint {
  const { sequence, hash } = at
  const unsigned = { sequence, hash, atMs: Math.floor(atMs), keyId: current.id }
  return { ...unsigned, mac: signText(current, textOf(unsigned)).mac }
}

/** Verifies a checkpoint's signature; `unknown_key` if none of these keys signed it. */
export function checkCheckpoint(keys: CheckpointKeys, checkpoint: Checkpoint): 'authentic' | 'forged' | 'unknown_key' {
  return checkSignature(keys, textOf(checkpoint), checkpoint)
}

/** A checkpoint as one line of JSON, to store elsewhere. */
export function writeCheckpoint({ sequence, hash, atMs, keyId, mac }: Checkpoint): string {
  return JSON.stringify({ version, sequence, hash, atMs, keyId, mac })
}

/** Parses what `writeCheckpoint` wrote; undefined for anything else. */
export function readCheckpoint(text: string): Checkpoint | undefined {
  const given = parseObject(text.trim()) ?? {}
  const { sequence, hash, atMs, keyId, mac } = given
  if (given['version'] !== version || !isCount(sequence) || !isCount(atMs)) return undefined
  if (typeof hash !== 'string' || typeof keyId !== 'string' || typeof mac !== 'string') return undefined
  return { sequence, hash, atMs, keyId, mac }
}

function textOf({ sequence, hash, atMs, keyId }: Omit<Checkpoint, 'mac'>): string {
  return JSON.stringify([version, sequence, hash, atMs, keyId])
}
