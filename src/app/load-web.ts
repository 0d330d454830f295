import { readdir } from 'node:fs/promises'
import { describeBug } from '../runtime/describe-bug.ts'
import { nextEventLoopTurn } from '../runtime/yield-to-event-loop.ts'
import type { WebListener } from '../web/web-listener.ts'
import type { Runtime } from './runtime.ts'
import type { OpenWebDeps } from './web.ts'

/** The folders of the web app, each after those that it imports. */
const folders = ['http', 'components', 'docs', 'pages', 'operator', 'admin']

/** Loads and opens the web app. Called for the first page: without it, the service takes less memory (decision 26). */
export async function loadWeb(runtime: Runtime, deps: OpenWebDeps): Promise<WebListener> {
  try {
    await loadInTurns()
    const [{ openWeb }, { createWebListener }] = await Promise.all([
      import('./web.ts'),
      import('../web/web-listener.ts'),
    ])
    return createWebListener(openWeb(runtime, deps))
  } catch (error) {
    runtime.log({ event: 'internal_error', requestId: '', ...describeBug(error) })
    throw error
  }
}

/** Loads its modules one at a time, and answers other requests in between: all of them take 0.2 s of CPU. */
async function loadInTurns(): Promise<void> {
  for (const folder of folders) {
    const url = new URL(`../web/${folder}/`, import.meta.url)
    for (const file of await readdir(url)) {
      await import(new URL(file, url).href)
      await nextEventLoopTurn()
    }
  }
}
