import type { Migration } from './migration.ts'

/** While the pepper changes, a key is found under two digests, and `pepper_id` names the last one it was hashed with. */
export const keyPeppersMigration: Migration = {
  name: '022-key-peppers',
  worksWith: '021-earlier-versions',
  statements: [
    `alter table keys add column next_digest text`,
    `alter table keys add column pepper_id text`,
    `create unique index keys_by_next_digest on keys (next_digest)`,
  ],
}
