import type { Kysely } from 'kysely'
import { keyDigest } from '../domain/keys.ts'
import type { Secret } from '../runtime/secret.ts'
import { SetupError } from '../runtime/setup-error.ts'
import type { Tables } from './schema/schema.ts'

const rowName = 'pepper_check'
/** The text whose digest identifies a pepper. */
const checkedText = 'svc-router pepper check'

/**
 * Verifies that this database was last used with one of these peppers, the current one first: with another one, keys
 * created since would be unknown and valid callers would get 401. The current pepper is remembered. @throws SetupError
 */
export async function checkPepper(db: Kysely<Tables>, peppers: readonly Secret[]): Promise<void> {
  const stored = await assertPepper(db, peppers)
  const check = checkOf(peppers[0]!)
  if (stored === check) return
  await db
    .insertInto('ledger')
    .values({ name: rowName, value: check })
    .onConflict((conflict) => conflict.column('name').doUpdateSet({ value: check }))
    .execute()
}

/** The same check without remembering a pepper, for a database that is only read. Returns what is stored. @throws SetupError */
export async function assertPepper(db: Kysely<Tables>, peppers: readonly Secret[]): Promise<string | undefined> {
  const row = await db.selectFrom('ledger').select('value').where('name', '=', rowName).executeTakeFirst()
  if (row === undefined || peppers.some((pepper) => checkOf(pepper) === row.value)) return row?.value
  throw new SetupError(
    'the database was last used with a different pepper, so keys created with it would not be recognized',
    'set that pepper, or configure it as the previous one (secrets.previous_pepper_env)',
  )
}

function checkOf(pepper: Secret): string {
  return keyDigest(checkedText, pepper)
}
