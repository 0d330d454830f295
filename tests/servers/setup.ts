import { join } from 'node:path'
import type { TestProject } from 'vitest/node'
import { install, Unavailable } from '../installing.ts'
import { cache, serverEnvironment } from './installing.ts'
import type { Model } from './model-server.ts'
import { servers } from './servers.ts'

declare module 'vitest' {
  interface ProvidedContext {
    model: Model
    /** Why a server is not available, by its name. */
    unavailable: Readonly<Record<string, string>>
  }
}

/** Creates the model and installs every available server. Only the first run is slow. */
export function setup(project: TestProject): void {
  const python = join(serverEnvironment('models'), 'bin', 'python')
  const folder = join(cache, 'model')
  install(python, [join(import.meta.dirname, 'make-tiny-model.py'), folder])
  const unavailable: Record<string, string> = {}
  for (const server of servers) {
    try {
      server.install()
    } catch (error) {
      if (!(error instanceof Unavailable)) throw error
      unavailable[server.name] = error.message
    }
  }
  project.provide('model', { gguf: join(folder, 'tiny.gguf'), hf: join(folder, 'hf') })
  project.provide('unavailable', unavailable)
}
