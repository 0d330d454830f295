import { existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { chromium, type Browser, type Page } from 'playwright-core'

export type ContextOptions = NonNullable<Parameters<Browser['newContext']>[0]>

/** The headless shell is the same engine without the windows around it, and takes a third less CPU time. */
const names = ['chromium-headless-shell', 'chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable']
const flags = ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu']
/** Pages of tests end before code that these compilers optimize has made up for its compilation. */
const noOptimizingCompilers = '--js-flags=--no-maglev,--no-turbofan'
const launchMs = 30_000
const stepMs = 10_000
/** The maximum number of idle pages with the same options. */
const maxIdle = 2

/** The browser that drives the pages: the one in CHROMIUM, or the first of `names` that PATH has. */
function findChromium(): string | undefined {
  const named = process.env['CHROMIUM'] ?? ''
  if (named !== '') return named
  const folders = [...(process.env['PATH'] ?? '').split(delimiter), '/usr/bin']
  return names.flatMap((name) => folders.map((folder) => join(folder, name))).find((path) => existsSync(path))
}

/** Whether there is a browser. Where there is none it says so loudly, and under CI it is an error. */
export function hasChromium(suite: string): boolean {
  if (findChromium() !== undefined) return true
  if (process.env.CI !== undefined) throw new Error(`no Chromium was found for ${suite}`)
  process.stderr.write(
    `\nSKIPPED: ${suite} in a browser, because no Chromium was found. Install one (Debian: apt-get install chromium-headless-shell), or name it in CHROMIUM.\n\n`,
  )
  return false
}

/** Starts the browser, with additional flags and environment variables. @throws if it cannot be started */
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

let shared: Promise<Browser> | undefined
/** The options of the context of a page. */
const kinds = new WeakMap<Page, string>()
/** Idle pages, by the options of their contexts. */
const idle = new Map<string, Page[]>()

/** The browser that all test files of a worker share. The first one starts it, and the end of the worker stops it. */
async function sharedChromium(): Promise<Browser> {
  const browser = await shared?.catch(() => undefined)
  if (browser?.isConnected() === true) return browser
  if (shared === undefined) {
    // Vitest ends a worker with SIGTERM: an exit lets Playwright kill the browser and remove its profile at once.
    process.once('SIGTERM', () => process.exit())
  }
  idle.clear()
  shared = startChromium([noOptimizingCompilers])
  return shared
}

/**
 * Lends a page without cookies, permissions, routes, and listeners, in its own context. Pages are reused, because the
 * first page of a context is several times as expensive as later ones. Return it with `returnPage`, or close its
 * context if the test changed other state.
 */
export async function lendPage(options: ContextOptions = {}): Promise<Page> {
  const browser = await sharedChromium()
  const kind = JSON.stringify(options)
  const waiting =
    idle
      .get(kind)
      ?.splice(0)
      .filter((page) => !page.isClosed()) ?? []
  const used = waiting.pop()
  idle.set(kind, waiting)
  if (used !== undefined) return used
  const context = await browser.newContext(options)
  context.setDefaultTimeout(stepMs)
  const page = await context.newPage()
  kinds.set(page, kind)
  return page
}

/** Returns a page from `lendPage`, in any state. */
export async function returnPage(page: Page): Promise<void> {
  const context = page.context()
  const kind = kinds.get(page) ?? ''
  const waiting = idle.get(kind) ?? []
  idle.set(kind, waiting)
  if (page.isClosed() || context.pages().length > 1 || waiting.length >= maxIdle) return context.close()
  const isReset = await Promise.race([
    reset(page).then(
      () => true,
      () => false,
    ),
    setTimeout(stepMs, false, { ref: false }),
  ])
  if (isReset) waiting.push(page)
  // A page that hangs would keep its context open and use CPU time, so the next test starts another browser.
  else {
    shared = undefined
    void context
      .browser()
      ?.close()
      .catch(() => undefined)
  }
}

/** Resets a page for its next use. @throws if it does not respond */
async function reset(page: Page): Promise<void> {
  await page.unrouteAll()
  // The page navigates itself, because a navigation by the browser would start a new process.
  await Promise.all([page.waitForURL('about:blank'), page.evaluate(`location.replace('about:blank')`)])
  await page.context().clearCookies()
  // Remove them last, because the test still needs the last events of its page.
  for (const event of ['console', 'pageerror', 'request', 'response']) page.removeAllListeners(event)
}
