import { join } from 'node:path'

/** The file of a data folder with the delivery marks. */
export function markPath(folder: string): string {
  return join(folder, 'deliveries')
}

/** The path of a data folder's checkpoint file. */
export function checkpointPath(folder: string): string {
  return join(folder, 'audit-checkpoint.json')
}
