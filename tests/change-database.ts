import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import { databasePath, isBusy } from '../src/storage/sqlite/connect-sqlite.ts'
import type { Service } from './service.ts'

const giveUpAfterMs = 5_000
const pauseMs = 5

/**
 * Runs a statement in the database of a running service, as another process might. It does not block this thread while
 * it waits for the lock, because a transaction of the service may need the thread to finish.
 * @throws SQLite's error
 */
export async function changeDatabase(service: Service, statement: string): Promise<void> {
  service.isChanged = true
  const giveUpAtMs = performance.now() + giveUpAfterMs
  const database = new DatabaseSync(databasePath(service.config.dataDir), { timeout: 0 })
  try {
    for (;;) {
      try {
        database.exec(statement)
        return
      } catch (error) {
        if (!isBusy(error) || performance.now() > giveUpAtMs) throw error
      }
      await sleep(pauseMs)
    }
  } finally {
    database.close()
  }
}
