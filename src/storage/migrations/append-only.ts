import type { EngineStatements } from './migration.ts'

/** An append-only table and the columns of its primary key. */
interface AppendOnlyTable {
  readonly table: string
  readonly key: readonly string[]
}

/**
 * Triggers that reject changes, deletions, and replacements in these tables (contract 25.3): a second line of defense
 * after the hash chain, which turns mistakes and injected statements into errors. The owner of the database can drop
 * them; the chain then reveals changes.
 */
export function appendOnly(tables: readonly AppendOnlyTable[]): EngineStatements {
  return {
    sqlite: tables.flatMap(({ table, key }) => [
      ...['update', 'delete'].map(
        (what) =>
          `create trigger ${table}_no_${what} before ${what} on ${table} begin select raise(abort, '${table} is append-only'); end`,
      ),
      // "insert or replace" deletes without firing the trigger above.
      `create trigger ${table}_no_replace before insert on ${table}
        when exists (select 1 from ${table} where ${key.map((column) => `${column} = new.${column}`).join(' and ')})
        begin select raise(abort, '${table} is append-only'); end`,
    ]),
    postgres: [
      `create function svc_router_append_only() returns trigger language plpgsql as
        $$ begin raise exception '% is append-only', tg_table_name; end $$`,
      ...tables.flatMap(({ table }) => [
        `create trigger ${table}_no_change before update or delete on ${table}
          for each row execute function svc_router_append_only()`,
        `create trigger ${table}_no_truncate before truncate on ${table}
          for each statement execute function svc_router_append_only()`,
      ]),
    ],
  }
}
