import { readFileSync } from 'node:fs'

/** The ids of a process's children; none if it has ended. */
export function childrenOf(pid: number): number[] {
  try {
    const text = readFileSync(`/proc/${pid}/task/${pid}/children`, 'latin1').trim()
    return text === '' ? [] : text.split(' ').map(Number)
  } catch (error) {
    if (error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ESRCH')) return []
    throw error
  }
}
