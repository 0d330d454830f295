import { existsSync, readFileSync } from 'node:fs'

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

/** Whether a process runs: one that has ended may remain until its new parent asks for its exit code. */
export function isRunning(pid: number): boolean {
  const text = existsSync(`/proc/${pid}`) ? readFileSync(`/proc/${pid}/stat`, 'latin1') : ') Z'
  return !text.slice(text.lastIndexOf(')')).startsWith(') Z')
}
