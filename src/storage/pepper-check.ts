import type { Kysely } from 'kysely'
import { keyDigest } from '../domain/keys.ts'
import type { Secret } from '../domain/secret.ts'
import { SetupError } from '../domain/setup-error.ts'
import type { Tables } from './schema.ts'

const rowName = 'pepper_check'
/** What is hashed under the pepper to know it again. */
const checkedText = 'svc-router pepper check'

/**
 * Makes sure that the keys in this database were made under one of these peppers, the current one first: under another
 * one every key would look unknown, and good callers would be told 401. The first pepper that is seen is remembered.
 * @throws SetupError
 */
export async function checkPepper(db: Kysely<Tables>, peppers: readonly Secret[]): Promise<void> {
  const checks = peppers.map((pepper) => keyDigest(checkedText, pepper))
  const row = await db.selectFrom('ledger').select('value').where('name', '=', rowName).executeTakeFirst()
  if (row !== undefined && !checks.includes(row.value)) {
    throw new SetupError(
      'the keys in the data folder were made under another pepper, so none of them would be known',
      'give the pepper that they were made with, or name it as the previous one (secrets.previous_pepper_env)',
    )
  }
  if (row?.value === checks[0]) return
  await db
    .insertInto('ledger')
    .values({ name: rowName, value: checks[0]! })
    .onConflict((conflict) => conflict.column('name').doUpdateSet({ value: checks[0]! }))
    .execute()
}
