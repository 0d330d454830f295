import type { Config } from '../config/config.ts'
import { checkPepper } from '../storage/pepper-check.ts'
import { createStore, type Store } from '../storage/store.ts'
import { peppersIn } from './runtime.ts'

/** The store of a database whose keys were hashed with the configured pepper; closes the database if not. @throws SetupError */
export async function checkedStore(db: Parameters<typeof createStore>[0], config: Config): Promise<Store> {
  try {
    await checkPepper(db, peppersIn(config))
    return createStore(db)
  } catch (error) {
    await db.destroy()
    throw error
  }
}
