import { spawnSync } from 'node:child_process'
import { join } from 'node:path'

export const root = join(import.meta.dirname, '..', '..')
export const deploy = join(root, 'deploy')
const timeoutMs = 60_000
/** `.ci/run` installs tools here. */
const cache = join(root, '.cache')
const path = `${join(cache, 'bin')}:${process.env.PATH ?? ''}`
export const schemas = join(cache, 'kubernetes-schemas', 'kubernetes_validate', 'kubernetes-json-schema')

export interface Ran {
  readonly status: number | null
  /** Standard output and standard error. */
  readonly output: string
}

/** Runs a program to its end. */
export function run(program: string, args: readonly string[], options: { cwd?: string; input?: string } = {}): Ran {
  const { status, stdout, stderr, error } = spawnSync(program, args, {
    encoding: 'utf8',
    timeout: timeoutMs,
    env: { ...process.env, PATH: path },
    ...options,
  })
  return { status, output: error === undefined ? `${stdout}${stderr}` : error.message }
}

/**
 * Whether a program can be run with these arguments. If not, says so loudly; where `.ci/run` installs the program, that is an
 * error in CI, because a test that never runs proves nothing.
 */
export function hasTool(program: string, args: readonly string[], { inCi = false } = {}): boolean {
  if (run(program, args).status === 0) return true
  if (inCi && process.env.CI !== undefined) throw new Error(`${program} was not found`)
  process.stderr.write(`\nSKIPPED: the tests of deploy/ that need ${program}, because it was not found\n\n`)
  return false
}
