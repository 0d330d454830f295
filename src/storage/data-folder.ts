import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'

const workerPrefix = 'worker-'

/** The folder of one worker in the data folder, for its delivery marks (contract 36.9). */
export function workerFolder(folder: string, worker: number): string {
  return join(folder, `${workerPrefix}${worker}`)
}

/** The numbers of the workers that have a folder, whether they run or not. */
export function workersWithFolder(folder: string): readonly number[] {
  if (!existsSync(folder)) return []
  return readdirSync(folder).flatMap((name) => {
    const number = name.startsWith(workerPrefix) ? name.slice(workerPrefix.length) : ''
    return /^\d{1,4}$/.test(number) ? [Number(number)] : []
  })
}

/** The file of a data folder with the delivery marks. */
export function markPath(folder: string): string {
  return join(folder, 'deliveries')
}

/** The path of a data folder's checkpoint file. */
export function checkpointPath(folder: string): string {
  return join(folder, 'audit-checkpoint.json')
}

/** The database of a data folder while it is restored. It stays, empty, if the restore fails. */
export function restoringPath(folder: string): string {
  return join(folder, 'svc-router.db.restoring')
}

/** How the name of a SQLite database begins whose data was moved to PostgreSQL. */
export const movedPrefix = 'svc-router.db.moved-'
