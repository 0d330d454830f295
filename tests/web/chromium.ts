import { existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { chromium, type Browser } from 'playwright-core'

const names = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable']
const flags = ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu']
const launchMs = 30_000

/** The browser that drives the pages: what CHROMIUM names, or the first of the usual names on PATH. */
function findChromium(): string | undefined {
  const named = process.env['CHROMIUM'] ?? ''
  if (named !== '') return named
  const folders = [...(process.env['PATH'] ?? '').split(delimiter), '/usr/bin']
  return folders.flatMap((folder) => names.map((name) => join(folder, name))).find((path) => existsSync(path))
}

/** Whether there is a browser. Where there is none it says so loudly, and under CI it is an error. */
export function hasChromium(suite: string): boolean {
  if (findChromium() !== undefined) return true
  if (process.env.CI !== undefined) throw new Error(`no Chromium was found for ${suite}`)
  process.stderr.write(
    `\nSKIPPED: ${suite} in a browser, because no Chromium was found. Install one (Debian: apt-get install chromium), or name it in CHROMIUM.\n\n`,
  )
  return false
}

/** Starts it, with flags and variables besides. @throws where it cannot be started */
export function startChromium(
  more: readonly string[] = [],
  env: Readonly<Record<string, string>> = {},
): Promise<Browser> {
  const executablePath = findChromium()
  if (executablePath === undefined) throw new Error('there is no Chromium')
  return chromium.launch({
    executablePath,
    args: [...flags, ...more],
    env: { ...process.env, ...env },
    timeout: launchMs,
  })
}
