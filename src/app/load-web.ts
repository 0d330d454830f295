import { readdir } from 'node:fs/promises'
import type { ServiceEvent } from '../domain/events.ts'
import { describeBug } from '../runtime/describe-bug.ts'
import { readInstalledVersion, readVersion } from '../runtime/version.ts'
import { nextEventLoopTurn } from '../runtime/yield-to-event-loop.ts'
import { ServiceUpgraded } from '../web/serve-web.ts'
import type { WebListener } from '../web/web-listener.ts'
import type { Runtime } from './runtime.ts'
import type { OpenWebDeps } from './web.ts'

/** Folders of the web app, roughly in the order of their imports, so that each step loads few modules. */
const folders = ['http', 'components', 'docs', 'pages', 'operator', 'admin']
/** The names of modules. Other files, such as an editor's copies, are not loaded. */
const moduleName = /^[\w-]+\.[jt]s$/

/**
 * Loads and opens the web app. Called for the first page: without it, the service takes less memory (decision 26). Logs
 * why it fails. @throws ServiceUpgraded
 */
export async function loadWeb(runtime: Runtime, deps: OpenWebDeps): Promise<WebListener> {
  try {
    requireSameVersion()
    await loadInTurns()
    const [{ openWeb }, { createWebListener }, { loadAssets }] = await Promise.all([
      import('./web.ts'),
      import('../web/web-listener.ts'),
      import('../web/http/assets.ts'),
    ])
    loadAssets()
    // The upgrade may have come in between.
    requireSameVersion()
    return createWebListener(openWeb(runtime, deps))
  } catch (error) {
    runtime.log(failureOf(error))
    throw error
  }
}

/** An upgrade replaces the files of a running process, whose modules in memory do not fit the new ones. */
function requireSameVersion(): void {
  if (readInstalledVersion() !== readVersion()) throw new ServiceUpgraded()
}

/**
 * Imports the modules one by one so that other requests are answered in between: loading all of them takes 0.2 s of CPU.
 */
async function loadInTurns(): Promise<void> {
  for (const folder of folders) {
    const url = new URL(`../web/${folder}/`, import.meta.url)
    for (const file of await readdir(url)) {
      if (!moduleName.test(file)) continue
      await import(new URL(file, url).href)
      await nextEventLoopTurn()
    }
  }
}

function failureOf(error: unknown): ServiceEvent {
  if (error instanceof ServiceUpgraded) return { event: 'web_app_failing', reason: 'upgraded' }
  const { syscall, code } = error as NodeJS.ErrnoException
  if (syscall !== undefined && code !== undefined) return { event: 'web_app_failing', reason: code }
  return { event: 'internal_error', requestId: '', ...describeBug(error) }
}
