import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'

const probeMs = 20_000
/** Looks for the package without importing it, which would take half a second of CPU time. */
const probe = 'from importlib.util import find_spec; assert find_spec("openai")'
const root = join(import.meta.dirname, '..', '..')

/** The Python that `.ci/run` sets up, or the machine's own if it has the package. */
function findPython(): string | undefined {
  const own = join(root, '.cache', 'python', 'bin', 'python')
  return [...(existsSync(own) ? [own] : []), 'python3'].find((python) => {
    try {
      execFileSync(python, ['-c', probe], { stdio: 'pipe', timeout: probeMs })
      return true
    } catch {
      // Missing, or without the package.
      return false
    }
  })
}

/**
 * A Python with the package `openai`. If there is none, it prints a warning, and under CI it throws: a suite that
 * never runs proves nothing.
 */
export function pythonWithOpenai(suite: string): string | undefined {
  const python = findPython()
  if (python !== undefined) return python
  const setUp =
    'python3 -m venv .cache/python && .cache/python/bin/pip install -r tests/clients/python/requirements.txt'
  if (process.env.CI !== undefined) throw new Error(`no Python with openai was found for ${suite}: ${setUp}`)
  process.stderr.write(`\nSKIPPED: ${suite}, because no Python with openai was found. To have it: ${setUp}\n\n`)
  return undefined
}
