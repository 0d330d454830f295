import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { install, pythonEnvironment } from '../installing.ts'

/** The folder of everything that these tests install. Delete it to install everything again. */
export const cache = join(import.meta.dirname, '..', '..', '.cache', 'servers')

/**
 * Returns the folder of a Python environment with the packages of requirements/NAME.txt, installed once.
 * @throws Unavailable
 */
export function serverEnvironment(name: string, env: Readonly<Record<string, string>> = {}): string {
  const folder = join(cache, name)
  pythonEnvironment(folder, join(import.meta.dirname, 'requirements', `${name}.txt`), env)
  return folder
}

/** Installs a Debian package if `file`, which it contains, does not exist. @throws Unavailable */
export function debianPackage(name: string, file: string): void {
  if (existsSync(file)) return
  const asRoot = process.getuid?.() === 0 ? [] : ['sudo', '-n']
  install('env', [...asRoot, 'apt-get', 'update', '-qq'])
  install('env', [...asRoot, 'apt-get', 'install', '-y', '-qq', '--no-install-recommends', name])
}

/**
 * Returns the path of the program of a Go module, compiled once into .cache/servers/NAME.
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
