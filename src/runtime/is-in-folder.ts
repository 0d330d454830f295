import { relative, resolve, sep } from 'node:path'

/** Whether a path is a folder or in it, at any depth. Both may be relative to the current folder. */
export function isInFolder(path: string, folder: string): boolean {
  const way = relative(resolve(folder), resolve(path))
  return way !== '..' && !way.startsWith(`..${sep}`)
}
