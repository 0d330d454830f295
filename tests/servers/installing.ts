import { spawnSync } from 'node:child_process'
import { copyFileSync, existsSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** Where everything that the tests of servers install lives. Delete it to install anew. */
export const cache = join(import.meta.dirname, '..', '..', '.cache', 'servers')

const withinMs = 3_600_000

/** A server that cannot be had on this machine, and why: a row of the report, not a failure. */
export class Unavailable extends Error {}

/**
 * Runs a command of an installation to its end, at low priority.
 * @throws Unavailable with the last words of the command where it fails
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
 * The folder of a Python environment with the packages of requirements/NAME.txt, installed once.
 * @throws Unavailable
 */
export function pythonEnvironment(name: string, env: Readonly<Record<string, string>> = {}): string {
  const wanted = join(import.meta.dirname, 'requirements', `${name}.txt`)
  const folder = join(cache, name)
  const installed = join(folder, 'installed.txt')
  if (existsSync(installed) && readFileSync(installed, 'utf8') === readFileSync(wanted, 'utf8')) return folder
  process.stderr.write(`installing ${name} into .cache/servers, once …\n`)
  mkdirSync(cache, { recursive: true })
  install('python3', ['-m', 'venv', folder])
  install(join(folder, 'bin', 'pip'), ['install', '--quiet', '--disable-pip-version-check', '-r', wanted], env)
  copyFileSync(wanted, installed)
  return folder
}

/** Makes sure that a Debian package is there, known by one of its files. @throws Unavailable */
export function debianPackage(name: string, file: string): void {
  if (existsSync(file)) return
  const asRoot = process.getuid?.() === 0 ? [] : ['sudo', '-n']
  install('env', [...asRoot, 'apt-get', 'update', '-qq'])
  install('env', [...asRoot, 'apt-get', 'install', '-y', '-qq', '--no-install-recommends', name])
}

/**
 * The program of a Go module, compiled once into .cache/servers/NAME.
 * @throws Unavailable
 */
export function goProgram(name: string, version: string, cFlags: string): string {
  const folder = join(cache, `${name.slice(name.lastIndexOf('/') + 1)}-${version}`)
  const program = join(folder, name.slice(name.lastIndexOf('/') + 1))
  if (existsSync(program)) return program
  process.stderr.write(`compiling ${name} into .cache/servers, once: about ten minutes …\n`)
  install('go', ['install', `${name}@${version}`], { GOBIN: folder, CGO_CFLAGS: '-O1', CGO_CXXFLAGS: cFlags })
  return program
}
