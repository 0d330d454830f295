import { duplexPair } from 'node:stream'
import { type App, type AppOptions, startApp } from '../src/app/app.ts'
import { startOwner } from '../src/app/owner.ts'
import { openWorkerStorage } from '../src/app/storage-worker.ts'
import type { Config } from '../src/config/config.ts'
import { systemClock } from '../src/runtime/clock.ts'
import { systemRandom } from '../src/runtime/random.ts'

/** Starts the service as a worker, with the owner of its SQLite database in the same process. */
export async function startAsWorker(config: Config, options: AppOptions): Promise<App> {
  const { log, clock = systemClock(), random = systemRandom() } = options
  const owner = await startOwner(config, { log, clock, random })
  const [ownerSide, socket] = duplexPair()
  const end = owner.serve(0, ownerSide, () => {})
  const onLost = (): void => log({ event: 'ledger_failing', reason: 'lost' })
  const openStorage: AppOptions['openStorage'] = (runtime) => openWorkerStorage(runtime, { worker: 0, socket, onLost })
  const app = await startApp(config, { ...options, openStorage })
  const stop = async (): Promise<void> => {
    await app.stop()
    end()
    await owner.stop()
  }
  let stopping: Promise<void> | undefined
  return { ...app, stop: () => (stopping ??= stop()) }
}
