import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { cpus } from 'node:os'

/** The properties of the machine that the figures depend on, printed with every report. */
export interface Machine {
  readonly node: string
  readonly cpu: string
  readonly cores: number
  /** The core of the gateways and the core of everything else; undefined if processes cannot be pinned. */
  readonly pinning: { readonly gateway: number; readonly others: number } | undefined
  /** Why processes are not pinned. */
  readonly unpinnedBecause: string | undefined
  /** Maximum number of files and sockets per process. */
  readonly maxOpenFiles: number
}

const wantedOpenFiles = 32_768

/**
 * Inspects the machine, raises the limit on open files as far as possible, and moves this process to the shared core.
 */
export function prepareMachine(): Machine {
  if (!existsSync('/proc/self/stat'))
    throw new Error('The benchmarks read CPU and memory from /proc: run them on Linux.')
  const cores = allowedCores()
  const unpinnedBecause = whyNotPinned(cores)
  const [others, gateway] = cores
  const pinning =
    unpinnedBecause === undefined && others !== undefined && gateway !== undefined ? { gateway, others } : undefined
  if (pinning !== undefined) spawnSync('taskset', ['-cp', String(pinning.others), String(process.pid)])
  return {
    node: process.version,
    cpu: cpus()[0]?.model.trim() ?? 'unknown',
    cores: cores.length,
    pinning,
    unpinnedBecause,
    maxOpenFiles: raiseOpenFiles(),
  }
}

function whyNotPinned(cores: readonly number[]): string | undefined {
  if (cores.length < 2) return 'there is only one core'
  return spawnSync('taskset', ['--version']).status === 0 ? undefined : 'taskset (util-linux) is not installed'
}

function allowedCores(): number[] {
  const list = /^Cpus_allowed_list:\s*(\S+)/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1] ?? '0'
  return list.split(',').flatMap((range) => {
    const [first = 0, last = first] = range.split('-').map(Number)
    return Array.from({ length: last - first + 1 }, (_, index) => first + index)
  })
}

// Node already raised the soft limit to the hard one. Only a privileged user can raise the hard one.
function raiseOpenFiles(): number {
  if (hardOpenFiles() < wantedOpenFiles) {
    spawnSync('prlimit', ['--pid', String(process.pid), `--nofile=${wantedOpenFiles}:${wantedOpenFiles}`])
  }
  return hardOpenFiles()
}

function hardOpenFiles(): number {
  const hard = /^Max open files\s+\S+\s+(\S+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1]
  return hard === 'unlimited' ? Number.MAX_SAFE_INTEGER : Number(hard)
}
