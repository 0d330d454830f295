import type { Kysely } from 'kysely'
import { keyDigest } from '../domain/keys.ts'
import type { Secret } from '../runtime/secret.ts'
import { SetupError } from '../runtime/setup-error.ts'
import type { Tables } from './schema/schema.ts'

const rowName = 'pepper_check'
/** The text whose digest identifies a pepper. */
const checkedText = 'svc-router pepper check'

/**
 * Verifies that the keys in this database were created under one of these peppers, the current one first: under another
 * one every key would be unknown and valid callers would get 401. The first pepper seen is remembered. @throws
 * SetupError
 */
export async function checkPepper(db: Kysely<Tables>, peppers: readonly Secret[]): Promise<void> {
  const checks = peppers.map((pepper) => keyDigest(checkedText, pepper))
  const row = await db.selectFrom('ledger').select('value').where('name', '=', rowName).executeTakeFirst()
  if (row !== undefined && !checks.includes(row.value)) {
    throw new SetupError(
      'the keys in the database were created with a different pepper, so none of them would be recognized',
      'set the pepper they were created with, or configure it as the previous one (secrets.previous_pepper_env)',
    )
  }
  if (row?.value === checks[0]) return
  await db
    .insertInto('ledger')
    .values({ name: rowName, value: checks[0]! })
    .onConflict((conflict) => conflict.column('name').doUpdateSet({ value: checks[0]! }))
    .execute()
}
