import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync } from 'node:fs'
import { join, resolve } from 'node:path'

/** The folder of this program. */
export const repository = join(import.meta.dirname, '..')
const copies = join(repository, '.cache', 'bench-programs')
const commit = /^[0-9a-f]{7,40}$/
const installTimeoutMs = 600_000

/**
 * The folder of the program at a commit, which is copied out of this repository and gets its packages, or the given folder
 * with another copy of the program. @throws Error if there is none
 */
export function programFolder(place: string): string {
  const folder = commit.test(place) ? join(copies, place) : resolve(place)
  if (commit.test(place) && !existsSync(folder)) {
    const archive = execFileSync('git', ['archive', place], { cwd: repository, maxBuffer: 1e9 })
    mkdirSync(folder, { recursive: true })
    execFileSync('tar', ['-x', '-C', folder], { input: archive })
  }
  const program = programFile(folder)
  if (!existsSync(program)) throw new Error(`${place} contains no svc-router.`)
  // Installs the packages if they are missing.
  execFileSync(process.execPath, [program, '--version'], { timeout: installTimeoutMs, stdio: 'ignore' })
  return folder
}

/** The file that starts the program of a folder, with the options that it gives to Node. */
export function programFile(folder = repository): string {
  return join(folder, 'bin', 'svc-router.mjs')
}
