import { DatabaseSync } from 'node:sqlite'
import { pathToFileURL } from 'node:url'
import type { Signature } from '../../runtime/mac.ts'

/*
 * A backup is one SQLite database: the tables of the service, and one more with the manifest and its signature. It contains
 * no paths and nothing that is executed.
 */

/** The table that only backups have. */
export const manifestTable = 'svc_router_backup'
/** Its definition, character for character as SQLite stores it. */
export const manifestTableSql = `CREATE TABLE ${manifestTable} (name text primary key, value text not null)`
/** The longest row of a table, and the longest manifest, in bytes. The largest stored text is far below it. */
const longestRowBytes = 128 * 1024 * 1024
const longestManifestBytes = 1024 * 1024

/** Opens a database that may be damaged or made to harm: read-only, without trusting what its schema calls. */
export function openUntrusted(path: string): DatabaseSync {
  const url = pathToFileURL(path)
  // A journal next to it is not part of it.
  url.searchParams.set('immutable', '1')
  const database = new DatabaseSync(url, {
    readOnly: true,
    defensive: true,
    enableForeignKeyConstraints: false,
    limits: { length: longestRowBytes, attach: 0 },
  })
  try {
    database.exec('pragma trusted_schema = off; pragma cell_size_check = on; pragma mmap_size = 0')
    return database
  } catch (error) {
    database.close()
    throw error
  }
}

/** Adds the manifest to a copy of the database. */
export function addManifest(database: DatabaseSync, manifest: string, signature: Signature): void {
  database.exec(manifestTableSql)
  const add = database.prepare(`insert into ${manifestTable} (name, value) values (?, ?)`)
  add.run('manifest', manifest)
  add.run('signature', JSON.stringify(signature))
}

/** The texts that `addManifest` stored; undefined if one is missing or too long. */
export function readManifestTexts(database: DatabaseSync): { manifest: string; signature: string } | undefined {
  const read = database.prepare(
    `select value from ${manifestTable} where name = ? and length(cast(value as blob)) <= ${longestManifestBytes}`,
  )
  const [manifest, signature] = ['manifest', 'signature'].map((name) => read.get(name)?.['value'])
  return typeof manifest === 'string' && typeof signature === 'string' ? { manifest, signature } : undefined
}
