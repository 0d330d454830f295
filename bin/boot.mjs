// Shared by both entry points. Plain JavaScript without packages: it runs before anything is installed, and on old Node
// versions.
import { spawn } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { constants } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

/** The package's root folder. */
export const root = dirname(dirname(fileURLToPath(import.meta.url)))

/** The oldest Node that runs the sources directly. */
export const oldestNode = [24, 12]
const installTimeoutMs = 600_000
const progressEveryMs = 3_000
const forwardedSignals = ['SIGINT', 'SIGTERM', 'SIGHUP']
const lookForParentMs = 250

/** A failure and its fix in one sentence. The entry points print it and exit with code 1. */
export class BootError extends Error {}

/**
 * Installs the packages in package-lock.json unless they are installed. A published package has no lock file and needs
 * none of this.
 */
export async function ensurePackages({ dev, folder = root, say = sayOnStderr }) {
  const lockPath = join(folder, 'package-lock.json')
  if (!existsSync(lockPath) || isInstalled(folder, dev)) return
  const what = dev ? 'packages, including those for development,' : 'packages'
  say(`svc-router: installing ${what} into ${join(folder, 'node_modules')} (npm ci). This happens once …`)
  if ((await runNpmCi(dev, folder, say)) === 0) return
  throw new BootError(
    'the packages could not be installed. Check the network and the npm registry, then run: npm ci --ignore-scripts',
  )
}

/** Reports npm's progress every few seconds. Returns its exit code. */
function runNpmCi(dev, folder, say) {
  const npm = process.platform === 'win32' ? 'npm.cmd' : 'npm'
  // Without development packages, the first start installs half as much. `npm test` installs them.
  const include = ['--include=optional', dev ? '--include=dev' : '--omit=dev']
  const child = spawn(npm, ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=http', ...include], {
    cwd: folder,
    stdio: ['ignore', 'ignore', 'pipe'],
    timeout: installTimeoutMs,
    shell: process.platform === 'win32',
  })
  const startedMs = performance.now()
  let downloaded = 0
  const lines = createInterface({ input: child.stderr })
  lines.on('line', (line) => {
    if (/^npm http .*\.tgz /.test(line)) downloaded += 1
    // npm's other output concerns Node's version, which findNode checks, and dependencies of packages.
    if (!/^npm (http|warn|notice)/i.test(line)) say(line)
  })
  const timer = setInterval(() => {
    const seconds = Math.round((performance.now() - startedMs) / 1000)
    say(`svc-router: ${seconds} s, packages downloaded: ${downloaded} …`)
  }, progressEveryMs)
  return new Promise((resolve) => {
    const end = (code) => {
      clearInterval(timer)
      resolve(code)
    }
    child.on('error', (error) => {
      say(`svc-router: npm could not be started (${error.code})`)
      end(1)
    })
    child.on('close', end)
  })
}

/**
 * Whether every package of the lock file is installed in its version, except optional ones and unneeded development
 * ones.
 */
export function isInstalled(folder, dev) {
  const wanted = readPackages(join(folder, 'package-lock.json'))
  const installed = readPackages(join(folder, 'node_modules', '.package-lock.json'))
  if (wanted === undefined || installed === undefined) return false
  return Object.entries(wanted).every(([path, entry]) => {
    if (path === '' || entry.link) return true
    const found = installed[path]
    if (found === undefined)
      return entry.optional === true || entry.devOptional === true || (!dev && entry.dev === true)
    return found.version === entry.version && (found.integrity === undefined || found.integrity === entry.integrity)
  })
}

function readPackages(path) {
  try {
    return JSON.parse(readFileSync(path, 'utf8')).packages
  } catch {
    return undefined
  }
}

/** The Node to run with: the pinned one, or the current one if it is new enough. */
export function findNode({ folder = root, version = process.versions.node } = {}) {
  const require = createRequire(join(folder, 'package.json'))
  try {
    const pinned = join(
      dirname(require.resolve(`node-${process.platform}-${process.arch}/package.json`)),
      'bin',
      'node',
    )
    if (existsSync(pinned)) return pinned
  } catch {
    // There is none for this platform, or optional packages were omitted.
  }
  const [major, minor] = version.split('.').map(Number)
  if (major > oldestNode[0] || (major === oldestNode[0] && minor >= oldestNode[1])) return process.execPath
  throw new BootError(
    `this is Node ${version}, and svc-router needs Node ${oldestNode.join('.')} or newer on ${process.platform}-${process.arch}. Install it from https://nodejs.org and run the command again`,
  )
}

/**
 * Node's options for the program. A young generation of half the usual size and two malloc arenas instead of one per
 * thread save memory with 1,000 open streams. The old generation is collected when it has grown by a quarter, and the C
 * library returns blocks of 32 KiB and more when they are freed, and the rest from 1 MiB on (decision 26).
 */
export const nodeFlags = ['--max-semi-space-size=16', '--no-page-promotion', '--heap-growing-percent=25']
/** The program's environment variables. Variables that are already set take precedence. */
export const nodeEnvironment = {
  // With a cache of compiled sources, later starts are faster and smaller.
  NODE_COMPILE_CACHE: join(root, 'node_modules', '.cache', 'svc-router'),
  MALLOC_ARENA_MAX: '2',
  MALLOC_MMAP_THRESHOLD_: '32768',
  MALLOC_TRIM_THRESHOLD_: '1048576',
}
/** The names of the variables that were set here, so that src/main.ts does not pass them to programs that it runs. */
const setByBootEnv = 'SVC_ROUTER_SET_BY_BOOT'
/** The ID of the process whose end must end the program. */
const parentEnv = 'SVC_ROUTER_PARENT'

/**
 * Runs a program with `node`: replaces this process if the system supports it, otherwise runs it as a child process.
 */
export function become(node, args) {
  const isReplaced = process.execve !== undefined && process.platform !== 'win32'
  // The program stops when this process ends or, if it replaces this one, when npm ends (src/cli/process/parent-exit.ts).
  const npm = process.env.npm_lifecycle_event === undefined ? {} : { [parentEnv]: String(process.ppid) }
  const parent = isReplaced ? npm : { [parentEnv]: String(process.pid) }
  const own = Object.entries({ ...nodeEnvironment, ...parent }).filter(
    ([name]) => name === parentEnv || process.env[name] === undefined,
  )
  const names = own.map(([name]) => name).join()
  const environment = { ...process.env, ...Object.fromEntries(own), [setByBootEnv]: names }
  // Without a second process between the service and the process that stops it, if possible.
  return isReplaced ? process.execve(node, [node, ...args], environment) : runToEnd(node, node, args, environment)
}

/** Runs a command with `node` and the packages' programs first in PATH. Returns its exit code. */
export function runToEnd(node, command, args, environment = {}) {
  const path = [dirname(node), join(root, 'node_modules', '.bin'), process.env.PATH ?? ''].join(delimiter)
  const child = spawn(command, args, { stdio: 'inherit', env: { ...process.env, PATH: path, ...environment } })
  for (const signal of forwardedSignals) {
    // Ctrl-C in a terminal reaches the child by itself. A second signal would abort its orderly shutdown.
    process.on(signal, () => {
      if (signal !== 'SIGINT' || !process.stdin.isTTY) child.kill(signal)
    })
  }
  stopWithNpm(child)
  return new Promise((resolve, reject) => {
    child.on('error', (error) => {
      reject(
        new BootError(
          error.code === 'ENOENT'
            ? `there is no command ${command}`
            : `${command} could not be started (${error.code})`,
        ),
      )
    })
    child.on('close', (code, signal) => resolve(code ?? 128 + (constants.signals[signal] ?? 0)))
  })
}

/** A signal to npm ends only npm and its shell, so the end of either is passed on. */
function stopWithNpm(child) {
  if (process.env.npm_lifecycle_event === undefined) return
  const parent = process.ppid
  const timer = setInterval(() => {
    if (process.ppid === parent) return
    clearInterval(timer)
    child.kill('SIGTERM')
  }, lookForParentMs)
  timer.unref()
}

/** Runs `work` and exits with its exit code. Prints a BootError as one line. */
export async function boot(work) {
  try {
    process.exitCode = await work()
  } catch (error) {
    if (!(error instanceof BootError)) throw error
    sayOnStderr(`svc-router: ${error.message}`)
    process.exitCode = 1
  }
}

function sayOnStderr(text) {
  process.stderr.write(`${text}\n`)
}
