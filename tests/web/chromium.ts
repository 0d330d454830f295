import { existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { chromium, type Browser, type Page } from 'playwright-core'

export type ContextOptions = NonNullable<Parameters<Browser['newContext']>[0]>

/** The headless shell is the same engine without the windows around it, and takes a third less CPU time. */
const names = ['chromium-headless-shell', 'chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable']
const flags = ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu']
const launchMs = 30_000
const stepMs = 10_000
/** Pages of one kind that wait for the next test. */
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

let shared: Promise<Browser> | undefined
/** The options of a page's context. */
const kinds = new WeakMap<Page, string>()
/** Pages that no test uses, by the options of their contexts. */
const idle = new Map<string, Page[]>()

/** The browser that the test files of a worker share: started by the first that needs it, ended with the worker. */
async function sharedChromium(): Promise<Browser> {
  const browser = await shared?.catch(() => undefined)
  if (browser?.isConnected() === true) return browser
  if (shared === undefined) {
    // Vitest ends a worker with SIGTERM: an exit lets Playwright kill the browser and remove its profile at once.
    process.once('SIGTERM', () => process.exit())
  }
  idle.clear()
  shared = startChromium()
  return shared
}

/**
 * A page without cookies, permissions, routes, and listeners, in a context of its own. It may have been used before:
 * the first page of a context costs several times what another one costs. Return it with `returnPage`, or close its
 * context where a test has changed more than that.
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

/** Returns a page of `lendPage` in any state. */
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
  // A page that hangs would keep its context open, and a processor busy: the next test starts another browser.
  else {
    shared = undefined
    void context
      .browser()
      ?.close()
      .catch(() => undefined)
  }
}

/** Makes a page as good as new. @throws where it does not respond */
async function reset(page: Page): Promise<void> {
  await page.unrouteAll()
  // The page goes there by itself: a new process would begin with a navigation that the browser starts.
  await Promise.all([page.waitForURL('about:blank'), page.evaluate(`location.replace('about:blank')`)])
  await page.context().clearCookies()
  // Not before: the test still wants to know what its page did last.
  for (const event of ['console', 'pageerror', 'request', 'response']) page.removeAllListeners(event)
}
