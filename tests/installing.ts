import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const withinMs = 3_600_000

/** Something that cannot be installed on this machine, and why. */
export class Unavailable extends Error {}

/**
 * Runs an installation command at low priority until it exits.
 * @throws Unavailable with the end of its output if it fails
 */
export function install(command: string, args: readonly string[], env: Readonly<Record<string, string>> = {}): void {
  const { status, stdout, stderr, error } = spawnSync('nice', ['-n', '19', command, ...args], {
    encoding: 'utf8',
    timeout: withinMs,
    maxBuffer: 100_000_000,
    env: { ...process.env, ...env },
  })
  if (status === 0) return
  const said = `${stdout}\n${stderr}`.trim().split('\n').slice(-3).join(' ')
  throw new Unavailable(`"${command} ${args.join(' ')}" failed: ${error?.message ?? said}`)
}

/**
 * Creates a Python environment with exactly the packages of a requirements file in a folder, unless it already exists there:
 * its programs contain its path, so they do not start after it was moved.
 * @throws Unavailable
 */
export function pythonEnvironment(
  folder: string,
  requirements: string,
  env: Readonly<Record<string, string>> = {},
): void {
  mkdirSync(folder, { recursive: true })
  const place = realpathSync(folder)
  const installed = join(place, 'installed.txt')
  const wanted = `# ${place}\n${readFileSync(requirements, 'utf8')}`
  if (existsSync(installed) && readFileSync(installed, 'utf8') === wanted) return
  process.stderr.write(`installing ${requirements} into ${place}, once …\n`)
  install('python3', ['-m', 'venv', '--clear', place])
  install(join(place, 'bin', 'pip'), ['install', '--quiet', '--disable-pip-version-check', '-r', requirements], env)
  writeFileSync(installed, wanted)
}
