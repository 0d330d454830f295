import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { Secret } from '../../src/runtime/secret.ts'
import { SetupError } from '../../src/runtime/setup-error.ts'
import { checkPepper } from '../../src/storage/pepper-check.ts'
import { openSqlite } from '../../src/storage/sqlite/open-sqlite.ts'

test('a database accepts only the pepper of its keys, or a new one if the previous one is also given', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'svc-router-pepper-'))
  const db = await openSqlite(folder)
  const [first, second] = [new Secret('a first pepper'), new Secret('a second pepper')]
  try {
    await checkPepper(db, [first])
    await checkPepper(db, [first])
    await expect(checkPepper(db, [second])).rejects.toBeInstanceOf(SetupError)
    await checkPepper(db, [second, first])
    await checkPepper(db, [second])
    await expect(checkPepper(db, [first])).rejects.toThrow(
      'the database was last used with a different pepper, so keys created with it would not be recognized',
    )
  } finally {
    await db.destroy()
    rmSync(folder, { recursive: true, force: true })
  }
})
