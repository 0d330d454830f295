import { existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { findPostgres } from '../postgres.ts'

const names = ['etcd', 'patroni', 'haproxy'] as const

/** Where a program is: in `PATH`, or where Debian installs servers. */
function findProgram(name: string): string | undefined {
  const folders = (process.env['PATH'] ?? '').split(delimiter)
  return [...folders, '/usr/sbin'].map((folder) => join(folder, name)).find((path) => existsSync(path))
}

/** @throws if it is missing: check `hasCluster` first */
export function programPath(name: string): string {
  const path = findProgram(name)
  if (path === undefined) throw new Error(`${name} was not found`)
  return path
}

/** Whether this machine can run a cluster. If not, prints what is missing. */
export function hasCluster(suite: string): boolean {
  const missing = names.filter((name) => findProgram(name) === undefined) as string[]
  if (findPostgres() === undefined) missing.push('PostgreSQL')
  if (missing.length === 0) return true
  process.stderr.write(`\nSKIPPED: ${suite}, because these programs were not found: ${missing.join(', ')}\n\n`)
  return false
}
