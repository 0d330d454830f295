import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { afterEach, beforeEach, expect, test } from 'vitest'

const root = join(import.meta.dirname, '..', '..')

let folder: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'svc-router-npm-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

async function isOpen(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1')
  try {
    await once(socket, 'connect')
    return true
  } catch {
    return false
  } finally {
    socket.destroy()
  }
}

/** Runs `npm start` as a user does. By default, only npm receives signals. */
async function npmStart() {
  const args = ['start', '--silent', '--', '--json', '--port', '0', '--data', join(folder, 'data')]
  const npm = spawn('npm', args, { cwd: root, stdio: ['ignore', 'pipe', 'ignore'], timeout: 40_000, detached: true })
  return { npm, port: await readPort(npm.stdout) }
}

/** Reads the port from what `start --json` prints. */
async function readPort(stdout: Readable): Promise<number> {
  stdout.setEncoding('utf8')
  let text = ''
  for await (const chunk of stdout.iterator({ destroyOnReturn: false }) as AsyncIterable<string>) {
    text += chunk
    if (text.includes('\n')) break
  }
  stdout.resume()
  const { base_url: baseUrl } = JSON.parse(text.slice(0, text.indexOf('\n'))) as { base_url: string }
  return Number(new URL(baseUrl).port)
}

test.each(['SIGTERM', 'SIGINT'] as const)(
  '%s to npm start ends the service, and port and data folder are free again',
  async (signal) => {
    const { npm, port } = await npmStart()
    expect(await isOpen(port)).toBe(true)
    const ended = once(npm, 'exit')
    // Ctrl-C in a terminal reaches every process of the group; any other signal reaches only npm.
    if (signal === 'SIGINT') process.kill(-npm.pid!, signal)
    else npm.kill(signal)
    await ended
    await expect.poll(() => isOpen(port), { timeout: 5_000 }).toBe(false)
    await expect.poll(async () => (await spawnOnce()).trim(), { timeout: 10_000, interval: 500 }).not.toBe('')
  },
  60_000,
)

/** The first line of another service on the same folder, which starts only if no other service uses the folder. */
async function spawnOnce(): Promise<string> {
  const args = ['start', '--json', '--port', '0', '--data', join(folder, 'data')]
  const child = spawn(process.execPath, [join(root, 'bin', 'svc-router.mjs'), ...args], {
    stdio: ['ignore', 'pipe', 'ignore'],
    timeout: 10_000,
  })
  const [chunk] = (await Promise.race([once(child.stdout, 'data'), once(child, 'exit').then(() => [''])])) as [Buffer]
  const gone = child.exitCode === null ? once(child, 'exit') : undefined
  child.kill('SIGKILL')
  await gone
  return String(chunk)
}

test('if bin/ cannot be replaced by the service, its end ends the service, too', { timeout: 60_000 }, async () => {
  const withoutExecve = 'data:text/javascript,delete process.execve'
  const bin = join(root, 'bin', 'svc-router.mjs')
  const args = ['--import', withoutExecve, bin, 'start', '--json', '--port', '0', '--data', join(folder, 'data')]
  const started = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'ignore'], timeout: 40_000 })
  const port = await readPort(started.stdout)
  started.kill('SIGKILL')
  await expect.poll(() => isOpen(port), { timeout: 10_000 }).toBe(false)
})
