import { describeBug } from '../runtime/describe-bug.ts'
import type { WebListener } from '../web/web-listener.ts'
import type { Runtime } from './runtime.ts'
import type { OpenWebDeps } from './web.ts'

/** Loads and opens the web app. Called for the first page, because many services never show one (decision 26). */
export async function loadWeb(runtime: Runtime, deps: OpenWebDeps): Promise<WebListener> {
  try {
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
