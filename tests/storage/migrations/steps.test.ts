import { expect, test } from 'vitest'
import { checksumOf } from '../../../src/storage/migrations/migrate.ts'
import { migrations } from '../../../src/storage/migrations/steps.ts'
import checksums from './checksums.json' with { type: 'json' }

/*
 * A database refuses to start if a migration that it has applied was changed. A migration can also change by accident: its
 * statements are built from constants. A change needs a new migration; add its line to checksums.json.
 */
test('no migration differs from the one that databases have applied', () => {
  expect(Object.fromEntries(migrations.map((step) => [step.name, checksumOf(step)]))).toEqual(checksums)
})
