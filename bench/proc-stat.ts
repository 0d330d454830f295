import { readFileSync } from 'node:fs'

// The kernel counts in hundredths of a second towards user space on every architecture that Node runs on.
const tickUs = 10_000
const maxDepth = 4

/** CPU of a process and its children so far, user and system, all threads, in microseconds (in steps of 10,000). */
export function readCpuUs(pid: number): number {
  return family(pid).reduce((sum, member) => {
    const stat = readFileSync(`/proc/${member}/stat`, 'latin1')
    // The name in parentheses may contain spaces: fields are counted from behind it, utime and stime are 14 and 15.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return sum + (Number(fields[11]) + Number(fields[12])) * tickUs
  }, 0)
}

/** Resident memory of a process and its children, in MB of a million bytes. */
export function readRssMb(pid: number): number {
  return family(pid).reduce((sum, member) => {
    const kib = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${member}/status`, 'latin1'))?.[1]
    return sum + (Number(kib) * 1024) / 1e6
  }, 0)
}

/** The process and everything that it started, so that no work hides in a child. */
function family(pid: number, depth = 0): number[] {
  if (depth === maxDepth) return [pid]
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'latin1').split(' ').filter(Boolean).map(Number)
  return [pid, ...children.flatMap((child) => family(child, depth + 1))]
}
