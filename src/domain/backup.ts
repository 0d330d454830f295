import type { MacKeys, Signature } from '../runtime/mac.ts'
import { checkSignature, deriveMacKeys, signText } from '../runtime/mac.ts'
import type { SealingKeys } from '../runtime/sealer.ts'
import type { ChainPosition } from './audit-chain.ts'
import { type Checkpoint, readCheckpoint, writeCheckpoint } from './checkpoint.ts'
import { isCount, isObject, type Json, objectOf, parseObject } from './json.ts'

/** Incremented when older versions can no longer read a backup. */
const format = 1
/** The latest time that a date can represent. */
const latestMs = 8_640_000_000_000_000
const derivedFor = 'svc-router backup v1'

/** What a table contains: its number of rows, and a SHA-256 in base64url over them in the order of their primary key. */
export interface TableContent {
  readonly rows: number
  readonly digest: string
}

/** What a backup says about itself (contract 37.2). */
export interface BackupManifest {
  /** When it was taken, in epoch milliseconds: the backup contains every change that was committed before. */
  readonly atMs: number
  /** The version of svc-router that took it. */
  readonly version: string
  /** The database that it was taken from. */
  readonly engine: 'sqlite' | 'postgres'
  /** The name of the last migration. */
  readonly schema: string
  readonly tables: Readonly<Record<string, TableContent>>
  /** The last entry of its audit log. */
  readonly audit: ChainPosition
  /** The last checkpoint that was stored outside the database; null if there was none. */
  readonly checkpoint: Checkpoint | null
  /** Where the secrets that it needs are, which it does not contain: environment variables, or `secrets.json`. */
  readonly secrets: readonly string[]
}

/** What became of the changes that were made after a backup. */
export interface Reapplied {
  /** Their entries, all of which are in the restored log. */
  readonly entries: number
  /** How many took effect again. */
  readonly applied: number
  /** How many could not, by event type: the audit log does not contain what they would need. */
  readonly lost: Readonly<Record<string, number>>
  /** Accounts that restricted a key or removed a way to sign in, which the log does not name; at most 50. */
  readonly accountsToCheck: readonly string[]
}

/** Keys that sign backups, derived from the sealing keys and used for nothing else. */
export function backupKeys(keys: SealingKeys): MacKeys {
  return deriveMacKeys(keys, derivedFor)
}

/** Signs the text of a manifest with the current key. */
export function signManifest({ current }: MacKeys, text: string): Signature {
  return signText(current, text)
}

/** Verifies the signature of a manifest's text; `unknown_key` if none of these keys made it. */
export function checkManifest(
  keys: MacKeys,
  text: string,
  signature: Signature,
): 'authentic' | 'forged' | 'unknown_key' {
  return checkSignature(keys, text, signature)
}

/** A manifest as JSON, which is what is signed. */
export function writeManifest({ checkpoint, ...rest }: BackupManifest): string {
  return JSON.stringify({ format, ...rest, checkpoint: checkpoint === null ? null : writeCheckpoint(checkpoint) })
}

/** Parses what `writeManifest` wrote; `newer` for the manifest of a later format, undefined for anything else. */
export function readManifest(text: string): BackupManifest | 'newer' | undefined {
  const given = parseObject(text) ?? {}
  const { atMs, version, engine, schema, secrets } = given
  if (isCount(given['format']) && given['format'] > format) return 'newer'
  if (
    given['format'] !== format ||
    !isCount(atMs) ||
    atMs > latestMs ||
    typeof version !== 'string' ||
    typeof schema !== 'string'
  )
    return undefined
  if (engine !== 'sqlite' && engine !== 'postgres') return undefined
  if (!Array.isArray(secrets) || !secrets.every((name) => typeof name === 'string')) return undefined
  const tables = readContents(given['tables'])
  const audit = readPosition(given['audit'])
  const stored = given['checkpoint']
  const checkpoint = typeof stored === 'string' ? readCheckpoint(stored) : stored === null ? null : undefined
  if (tables === undefined || audit === undefined || checkpoint === undefined) return undefined
  return { atMs, version, engine, schema, tables, audit, checkpoint, secrets }
}

/** Parses a signature as it is stored next to the manifest. */
export function readSignature(text: string): Signature | undefined {
  const { keyId, mac } = parseObject(text) ?? {}
  return typeof keyId === 'string' && typeof mac === 'string' ? { keyId, mac } : undefined
}

/** The names of the tables whose contents differ, sorted. */
export function differingTables(a: BackupManifest['tables'], b: BackupManifest['tables']): readonly string[] {
  const names = new Set([...Object.keys(a), ...Object.keys(b)])
  return [...names].filter((name) => a[name]?.rows !== b[name]?.rows || a[name]?.digest !== b[name]?.digest).sort()
}

function readPosition(given: Json | undefined): ChainPosition | undefined {
  const { sequence, hash } = objectOf(given)
  return isCount(sequence) && typeof hash === 'string' ? { sequence, hash } : undefined
}

function readContents(tables: Json | undefined): BackupManifest['tables'] | undefined {
  if (!isObject(tables)) return undefined
  const contents = new Map<string, TableContent>()
  for (const [name, content] of Object.entries(tables)) {
    const { rows, digest } = objectOf(content)
    if (!isCount(rows) || typeof digest !== 'string') return undefined
    contents.set(name, { rows, digest })
  }
  return Object.fromEntries(contents)
}
