import { existsSync, readFileSync } from 'node:fs'

/** The ids of a process's children. */
export function childrenOf(pid: number): number[] {
  const text = existsSync(`/proc/${pid}`) ? readFileSync(`/proc/${pid}/task/${pid}/children`, 'latin1').trim() : ''
  return text === '' ? [] : text.split(' ').map(Number)
}
