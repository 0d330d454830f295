import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { afterEach, beforeEach, expect, test } from 'vitest'

const timeoutMs = 30_000
const root = join(import.meta.dirname, '..', '..')

/** A copy of the program, which the tests change while it runs. */
let folder: string
let child: ChildProcessByStdio<null, Readable, null> | undefined
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'svc-router-load-web-'))
  for (const name of ['package.json', 'src']) cpSync(join(root, name), join(folder, name), { recursive: true })
  for (const name of ['docs', 'node_modules']) symlinkSync(join(root, name), join(folder, name))
})
afterEach(() => {
  child?.kill('SIGKILL')
  rmSync(folder, { recursive: true, force: true })
})

/** Starts the copy, and returns the URL of its web app. */
async function start(): Promise<string> {
  const args = [join(folder, 'src', 'main.ts'), 'start', '--port', '0', '--app-port', '0', '--json']
  child = spawn(process.execPath, args, { cwd: folder, stdio: ['ignore', 'pipe', 'ignore'] })
  const [started] = await child.stdout.take(1).toArray({ signal: AbortSignal.timeout(timeoutMs) })
  return (JSON.parse(String(started)) as { app_url: string }).app_url
}

test('other files between its modules do not break the web app', { timeout: timeoutMs }, async () => {
  const pages = join(folder, 'src', 'web', 'pages')
  for (const name of ['home.ts.orig', 'home.js.map', '.DS_Store', '.home.ts', 'home.d.ts'])
    writeFileSync(join(pages, name), 'throw new Error("not a module")')
  mkdirSync(join(pages, 'drafts'))
  const page = await fetch(await start())
  expect([page.status, await page.text()]).toEqual([200, expect.stringContaining('<!doctype html>')])
})
