import { readdir } from 'node:fs/promises'
import { describeBug } from '../runtime/describe-bug.ts'
import { nextEventLoopTurn } from '../runtime/yield-to-event-loop.ts'
import type { WebListener } from '../web/web-listener.ts'
import type { Runtime } from './runtime.ts'
import type { OpenWebDeps } from './web.ts'

/** Folders of the web app, roughly in the order of their imports, so that each step loads few modules. */
const folders = ['http', 'components', 'docs', 'pages', 'operator', 'admin']
/** The names of modules. Other files, such as an editor's copies, are not loaded. */
const moduleName = /^[\w-]+\.[jt]s$/

/**
 * Loads and opens the web app. Called for the first page: without it, the service takes less memory (decision 26). Logs
 * why it fails.
 */
export async function loadWeb(runtime: Runtime, deps: OpenWebDeps): Promise<WebListener> {
  try {
    await loadInTurns()
    const [{ openWeb }, { createWebListener }, { loadAssets }] = await Promise.all([
      import('./web.ts'),
      import('../web/web-listener.ts'),
      import('../web/http/assets.ts'),
    ])
    loadAssets()
    return createWebListener(openWeb(runtime, deps))
  } catch (error) {
    runtime.log({ event: 'internal_error', requestId: '', ...describeBug(error) })
    throw error
  }
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
