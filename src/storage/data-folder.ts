import { join } from 'node:path'

/** The file of a data folder with the delivery marks. */
export function markPath(folder: string): string {
  return join(folder, 'deliveries')
}

/** The path of a data folder's checkpoint file. */
export function checkpointPath(folder: string): string {
  return join(folder, 'audit-checkpoint.json')
}

/** The database of a data folder while it is restored. */
export function restoringPath(folder: string): string {
  return join(folder, 'svc-router.db.restoring')
}

/** How the name of a SQLite database begins whose data was moved to PostgreSQL. */
export const movedPrefix = 'svc-router.db.moved-'
