import { createHmac, hkdfSync, timingSafeEqual } from 'node:crypto'
import type { SealingKey, SealingKeys } from '../runtime/sealer.ts'
import { Secret } from '../runtime/secret.ts'
import type { ChainPosition } from './audit-chain.ts'
import { parseObject } from './json.ts'

const version = 1
const derivedBytes = 32
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
export interface CheckpointKeys {
  readonly current: SealingKey
  readonly previous: SealingKey | undefined
}

/** Derives the keys that sign checkpoints from the sealing keys. */
export function checkpointKeys({ current, previous }: SealingKeys): CheckpointKeys {
  return { current: derive(current), previous: previous === undefined ? undefined : derive(previous) }
}

/** Signs a position of the log with the current key. */
export function signCheckpoint({ current }: CheckpointKeys, at: ChainPosition, atMs: number): Checkpoint {
  const { sequence, hash } = at
  const unsigned = { sequence, hash, atMs: Math.floor(atMs), keyId: current.id }
  return { ...unsigned, mac: macOf(current, unsigned) }
}

/** Verifies a checkpoint's signature; `unknown_key` if none of these keys signed it. */
export function checkCheckpoint(keys: CheckpointKeys, checkpoint: Checkpoint): 'authentic' | 'forged' | 'unknown_key' {
  const key = [keys.current, keys.previous].find((candidate) => candidate?.id === checkpoint.keyId)
  if (key === undefined) return 'unknown_key'
  const given = Buffer.from(checkpoint.mac)
  const right = Buffer.from(macOf(key, checkpoint))
  return given.length === right.length && timingSafeEqual(given, right) ? 'authentic' : 'forged'
}

/** A checkpoint as one line of JSON, to store elsewhere. */
export function writeCheckpoint({ sequence, hash, atMs, keyId, mac }: Checkpoint): string {
  return JSON.stringify({ version, sequence, hash, atMs, keyId, mac })
}

/** Parses what `writeCheckpoint` wrote; undefined for anything else. */
export function readCheckpoint(text: string): Checkpoint | undefined {
  const given = parseObject(text.trim()) ?? {}
  const { sequence, hash, atMs, keyId, mac } = given
  if (given['version'] !== version || !isWhole(sequence) || !isWhole(atMs)) return undefined
  if (typeof hash !== 'string' || typeof keyId !== 'string' || typeof mac !== 'string') return undefined
  return { sequence, hash, atMs, keyId, mac }
}

function isWhole(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
}

function derive({ id, key }: SealingKey): SealingKey {
  const derived = hkdfSync('sha256', key.reveal(), '', derivedFor, derivedBytes)
  return { id, key: new Secret(new Uint8Array(derived)) }
}

function macOf(key: SealingKey, { sequence, hash, atMs, keyId }: Omit<Checkpoint, 'mac'>): string {
  const text = JSON.stringify([version, sequence, hash, atMs, keyId])
  return createHmac('sha256', key.key.reveal()).update(text).digest('base64url')
}
