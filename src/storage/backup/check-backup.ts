import { closeSync, openSync, readSync, statSync } from 'node:fs'
import type { DatabaseSync } from 'node:sqlite'
import { BackupError } from '../../domain/backup-error.ts'
import {
  type BackupManifest,
  checkManifest,
  differingTables,
  readManifest,
  readSignature,
} from '../../domain/backup.ts'
import type { MacKeys } from '../../runtime/mac.ts'
import { SchemaMismatch } from '../migrations/migrate.ts'
import { manifestTable, manifestTableSql, openUntrusted, readManifestTexts } from './backup-file.ts'
import { assertKnownSchema } from './known-schemas.ts'
import { digestTables, readTables } from './table-contents.ts'

const headerBytes = 100
const magic = 'SQLite format 3\0'
const another = 'choose another backup'
const newer = 'use that version, or a newer one'

/**
 * Verifies a backup: that it is whole, was not changed since it was signed, and contains what its manifest says (contract
 * 37.3). `name` is how errors call it. `trust` accepts a signature that is not of these keys. Nothing in the file is trusted before. Blocks its thread.
 * @throws BackupError
 */
export function checkBackup(path: string, name: string, keys: MacKeys, trust: boolean): BackupManifest {
  assertWhole(path, name)
  try {
    using database = openUntrusted(path)
    return checkContents(database, name, keys, trust)
  } catch (error) {
    if (error instanceof BackupError) throw error
    if (error instanceof SchemaMismatch)
      throw new BackupError(
        `${name} cannot be restored: ${error.message}`,
        `${newer}. The file may also be damaged: ${another}`,
      )
    if (isOfEngine(error)) throw damaged(name)
    throw error
  }
}

function checkContents(database: DatabaseSync, name: string, keys: MacKeys, trust: boolean): BackupManifest {
  const own = database.prepare('select sql from sqlite_schema where name = ?').all(manifestTable)
  if (own.length !== 1 || own[0]?.['sql'] !== manifestTableSql) throw notOurs(name)
  const manifest = readSigned(database, name, keys, trust)
  const schema = assertKnownSchema(database)
  const problems = database.prepare('pragma integrity_check(1)').all()
  if (problems.length !== 1 || problems[0]?.['integrity_check'] !== 'ok') throw damaged(name)
  const tables = readTables(database).filter((table) => table.name !== manifestTable)
  const differing = differingTables(manifest.tables, digestTables(database, tables))
  if (differing.length > 0 || manifest.schema !== schema)
    throw new BackupError(
      `${name} is damaged: its contents differ from its manifest${differing.length === 0 ? '' : ` (${differing.join(', ')})`}`,
      another,
    )
  return manifest
}

function readSigned(database: DatabaseSync, name: string, keys: MacKeys, trust: boolean): BackupManifest {
  const texts = readManifestTexts(database)
  const signature = texts === undefined ? undefined : readSignature(texts.signature)
  if (texts === undefined || signature === undefined) throw notOurs(name)
  const kind = checkManifest(keys, texts.manifest, signature)
  if (kind !== 'authentic' && !trust) throw notAuthentic(name, kind)
  const manifest = readManifest(texts.manifest)
  if (manifest === 'newer') throw new BackupError(`${name} was taken by a newer version of svc-router`, newer)
  if (manifest === undefined) throw notOurs(name)
  return manifest
}

function notAuthentic(name: string, kind: 'forged' | 'unknown_key'): BackupError {
  if (kind === 'forged')
    return new BackupError(
      `${name} was changed after it was taken: its signature is wrong`,
      `${another}, or restore this one without proof: add --trust`,
    )
  return new BackupError(
    `${name} was signed with another sealing key, so nothing proves that it was not changed`,
    'configure that key as the previous one (secrets.previous_sealing_key_env), or restore without proof: add --trust',
  )
}

/** By its size, page by page: a file that was copied in part, or that has something appended, is rejected. */
function assertWhole(path: string, name: string): void {
  const stats = statSync(path, { throwIfNoEntry: false })
  if (stats === undefined) throw new BackupError(`there is no file ${name}`, 'specify the backup to restore')
  if (!stats.isFile()) throw notOurs(name)
  const header = Buffer.alloc(headerBytes)
  const file = openSync(path, 'r')
  try {
    readSync(file, header, 0, headerBytes, 0)
  } finally {
    closeSync(file)
  }
  if (header.toString('latin1', 0, magic.length) !== magic) throw notOurs(name)
  const pageBytes = header.readUInt16BE(16) === 1 ? 65_536 : header.readUInt16BE(16)
  // Any other journal mode would need a second file.
  const isAlone = header.readUInt8(18) === 1 && header.readUInt8(19) === 1
  if (!isAlone || stats.size !== pageBytes * header.readUInt32BE(28)) throw damaged(name)
}

function notOurs(name: string): BackupError {
  return new BackupError(`${name} is not a backup made by svc-router`, 'specify a file that the "backup" command wrote')
}

function damaged(name: string): BackupError {
  return new BackupError(`${name} is damaged or incomplete`, another)
}

/** An error of SQLite, or of a number that JavaScript cannot represent. */
function isOfEngine(error: unknown): boolean {
  const { code } = error as { code?: unknown }
  return code === 'ERR_SQLITE_ERROR' || code === 'ERR_OUT_OF_RANGE'
}
