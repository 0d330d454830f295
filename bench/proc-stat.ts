import { readdirSync, readFileSync } from 'node:fs'

// The kernel reports hundredths of a second on every architecture that Node supports.
const tickUs = 10_000
const maxDepth = 4

/** How often to read a family of processes whose members end meanwhile. */
const maxReads = 5

/** CPU of a process and its children so far, user and system, all threads, in microseconds (in steps of 10,000). */
export function readCpuUs(pid: number): number {
  return sumOfFamily(pid, (member) => {
    const stat = readFileSync(`/proc/${member}/stat`, 'latin1')
    // The name in parentheses may contain spaces, so count the fields after it: utime and stime are fields 14 and 15,
    // followed by those of children that have ended, which PostgreSQL's do when a connection closes.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return fields.slice(11, 15).reduce((ticks, field) => ticks + Number(field), 0) * tickUs
  })
}

/** CPU of the threads of a process so far, in nanoseconds. Unlike `readCpuUs`, threads that ended do not count. */
export function readCpuNs(pid: number): number {
  return readdirSync(`/proc/${pid}/task`).reduce(
    (sum, thread) => sum + Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'latin1').split(' ', 1)[0]),
    0,
  )
}

/** Nanoseconds of CPU of all threads of a process, and of its main thread. */
export interface ThreadCpu {
  readonly all: number
  readonly main: number
}

/** CPU of a process so far, by thread. */
export function readThreadCpuNs(pid: number): ThreadCpu {
  const stat = readFileSync(`/proc/${pid}/task/${pid}/schedstat`, 'latin1')
  return { all: readCpuNs(pid), main: Number(stat.split(' ', 1)[0]) }
}

/** Resident memory of a process and its children, in MB of a million bytes. */
export function readRssMb(pid: number): number {
  return sumOfFamily(pid, (member) => {
    const kib = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${member}/status`, 'latin1'))?.[1]
    return (Number(kib) * 1024) / 1e6
  })
}

/** Sums a figure of a process and all its descendants, again if one of them ends meanwhile. */
function sumOfFamily(pid: number, read: (member: number) => number): number {
  for (let reads = 1; ; reads++) {
    try {
      return family(pid).reduce((sum, member) => sum + read(member), 0)
    } catch (error) {
      if (reads === maxReads || !isGone(error)) throw error
    }
  }
}

function isGone(error: unknown): boolean {
  return error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ESRCH')
}

/** The process and all its descendants, so that the work of child processes counts. */
function family(pid: number, depth = 0): number[] {
  if (depth === maxDepth) return [pid]
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'latin1').split(' ').filter(Boolean).map(Number)
  return [pid, ...children.flatMap((child) => family(child, depth + 1))]
}
