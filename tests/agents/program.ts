import { spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const cache = join(import.meta.dirname, '..', '..', '.cache', 'agents')
const installWithinMs = 800_000
const killAfterMs = 5_000
const maxOutputCharacters = 2_000_000

/** A proxy that does not exist: nothing listens on the port of the discard protocol. */
const missingProxy = 'http://127.0.0.1:9'

/**
 * Returns the folder of an agent's package in this exact version, downloaded once into .cache/agents. Install scripts of
 * packages do not run.
 * @throws Error if the registry cannot be reached, because a pass without the program would prove nothing
 */
export function installAgent(name: string, version: string): string {
  const prefix = join(cache, `${name.replace('@', '').replace('/', '-')}-${version}`)
  const folder = join(prefix, 'node_modules', ...name.split('/'))
  // npm writes this file last, so a folder without it is incomplete.
  const finished = join(prefix, 'node_modules', '.package-lock.json')
  if (existsSync(finished)) return folder
  process.stderr.write(`installing ${name}@${version} into .cache/agents, once …\n`)
  mkdirSync(prefix, { recursive: true })
  writeFileSync(join(prefix, 'package.json'), '{ "private": true }\n')
  const flags = [
    '--ignore-scripts',
    '--include=optional',
    '--prefer-offline',
    '--no-audit',
    '--no-fund',
    '--loglevel=error',
  ]
  const { status, stderr } = spawnSync('npm', ['install', ...flags, `${name}@${version}`], {
    cwd: prefix,
    encoding: 'utf8',
    timeout: installWithinMs,
  })
  if (status !== 0)
    throw new Error(`${name}@${version} could not be installed, so it was not tested. Output of npm: ${stderr.trim()}`)
  return folder
}

export interface Finished {
  /** Null if the program ran too long and was ended. */
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/**
 * Runs an agent with its own home, working folder, and temporary folder until it exits. A proxy that does not exist
 * blocks every connection to another machine: agents download updates, plugins, and model lists unprompted.
 */
export async function runAgent(
  command: string,
  args: readonly string[],
  { folder, env, withinMs }: { folder: string; env: Readonly<Record<string, string>>; withinMs: number },
): Promise<Finished> {
  const home = homeIn(folder)
  const work = join(folder, 'work')
  const temporary = join(folder, 'tmp')
  for (const path of [home, work, temporary]) mkdirSync(path, { recursive: true })
  const proxies = Object.fromEntries(
    ['http_proxy', 'https_proxy', 'all_proxy'].flatMap((name) => [
      [name, missingProxy],
      [name.toUpperCase(), missingProxy],
    ]),
  )
  const child = spawn(command, args, {
    cwd: work,
    // Its own process group, so that its child processes end with it.
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      PATH: process.env['PATH'],
      HOME: home,
      TMPDIR: temporary,
      NO_PROXY: '127.0.0.1,localhost',
      no_proxy: '127.0.0.1,localhost',
      ...proxies,
      ...env,
    },
  })
  const output = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', (text: string) => {
      if (output[name].length < maxOutputCharacters) output[name] += text
    })
  }
  const killGroup = (signal: NodeJS.Signals): void => {
    try {
      process.kill(-child.pid!, signal)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
    }
  }
  let isLate = false
  const timers = [
    setTimeout(() => {
      isLate = true
      killGroup('SIGTERM')
    }, withinMs),
    setTimeout(() => killGroup('SIGKILL'), withinMs + killAfterMs),
  ]
  try {
    const code = await new Promise<number | null>((resolve, reject) => {
      child.once('error', reject)
      child.once('close', resolve)
    })
    return { code: isLate ? null : code, ...output }
  } finally {
    timers.forEach(clearTimeout)
    if (child.pid !== undefined) killGroup('SIGKILL')
  }
}

const homeIn = (folder: string): string => join(folder, 'home')

/** Kills what programs that ran in a folder left running, such as the daemon of Cline, which has its own process group. */
export function killLeftBehind(folder: string): void {
  for (const pid of processesWith(`HOME=${homeIn(folder)}`)) {
    try {
      process.kill(pid, 'SIGKILL')
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
    }
  }
}

/** The IDs of the processes with this in their environment. Only Linux tells. */
function processesWith(variable: string): number[] {
  if (!existsSync('/proc/self/environ')) return []
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && environmentOf(name).includes(variable))
    .map(Number)
}

function environmentOf(pid: string): string[] {
  try {
    return readFileSync(join('/proc', pid, 'environ'), 'utf8').split('\0')
  } catch {
    // It has ended, or belongs to another user.
    return []
  }
}
