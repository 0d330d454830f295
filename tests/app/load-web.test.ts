import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { afterEach, beforeEach, expect, test } from 'vitest'

const timeoutMs = 30_000
const otherVersion = '{"type":"module","version":"999.0.0"}'
const root = join(import.meta.dirname, '..', '..')

/** A copy of the program, which the tests change while it runs. */
let folder: string
let child: ChildProcessByStdio<null, Readable, Readable> | undefined
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'svc-router-load-web-'))
  for (const name of ['package.json', 'src']) cpSync(join(root, name), join(folder, name), { recursive: true })
  for (const name of ['docs', 'node_modules']) symlinkSync(join(root, name), join(folder, name))
})
afterEach(() => {
  child?.kill('SIGKILL')
  rmSync(folder, { recursive: true, force: true })
})

/** Starts the copy, and returns the URL of its web app and its next log line with one of the events. */
async function start(): Promise<{
  readonly appUrl: string
  readonly logged: (...events: readonly string[]) => Promise<unknown>
}> {
  const args = [join(folder, 'src', 'main.ts'), 'start', '--port', '0', '--app-port', '0', '--json']
  child = spawn(process.execPath, args, { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] })
  const log = createInterface(child.stderr)
  const lines = log[Symbol.asyncIterator]()
  const logged = async (...events: readonly string[]): Promise<unknown> => {
    for (;;) {
      const { value, done } = await lines.next()
      if (done === true) return undefined
      const line = JSON.parse(value) as { event: string }
      if (events.includes(line.event)) return line
    }
  }
  const [started] = await child.stdout.take(1).toArray({ signal: AbortSignal.timeout(timeoutMs) })
  return { appUrl: (JSON.parse(String(started)) as { app_url: string }).app_url, logged }
}

test(
  'a service that was upgraded before its first page loads no module, answers that it must be restarted, and logs why',
  { timeout: timeoutMs },
  async () => {
    writeFileSync(join(folder, 'src', 'web', 'pages', 'trace.ts'), 'console.error(\'{"event":"loaded"}\')')
    const { appUrl, logged } = await start()
    writeFileSync(join(folder, 'package.json'), otherVersion)
    const page = await fetch(appUrl)
    expect([page.status, await page.text()]).toEqual([503, expect.stringContaining('must be restarted')])
    expect(await logged('web_app_failing', 'loaded')).toMatchObject({ event: 'web_app_failing', reason: 'upgraded' })
  },
)

test('a service that is upgraded while it loads the web app does not serve it', { timeout: timeoutMs }, async () => {
  const upgrade = `import { writeFileSync } from 'node:fs'
    writeFileSync('package.json', '${otherVersion}')`
  writeFileSync(join(folder, 'src', 'web', 'pages', 'upgrade-now.ts'), upgrade)
  const { appUrl, logged } = await start()
  expect((await fetch(appUrl)).status).toBe(503)
  expect(await logged('web_app_failing')).toMatchObject({ reason: 'upgraded' })
})

test('a file of the web app that cannot be read is logged with its error code', { timeout: timeoutMs }, async () => {
  const { appUrl, logged } = await start()
  rmSync(join(folder, 'src', 'web', 'assets', 'icon.svg'))
  expect((await fetch(appUrl)).status).toBe(503)
  expect(await logged('web_app_failing')).toMatchObject({ reason: 'ENOENT' })
})

test('other files between its modules do not break the web app', { timeout: timeoutMs }, async () => {
  const pages = join(folder, 'src', 'web', 'pages')
  for (const name of ['home.ts.orig', 'home.js.map', '.DS_Store', '.home.ts', 'home.d.ts'])
    writeFileSync(join(pages, name), 'throw new Error("not a module")')
  mkdirSync(join(pages, 'drafts'))
  const { appUrl } = await start()
  const page = await fetch(appUrl)
  expect([page.status, await page.text()]).toEqual([200, expect.stringContaining('<!doctype html>')])
})
