import type { Migration } from './migration.ts'

/**
 * PostgreSQL estimates that these functions read thousands of rows, and then compiles each of their statements with LLVM:
 * booking 180 requests took 2.2 s instead of 30 ms. A function that a later migration creates needs `set jit = off` of its own.
 */
const withoutJit = `do $$
declare
  named regprocedure;
begin
  for named in
    select oid::regprocedure from pg_proc
    where pronamespace = current_schema()::regnamespace and 'enable_seqscan=off' = any (proconfig)
  loop
    execute format('alter function %s set jit = off', named);
  end loop;
end $$`

/** The functions of the ledger are not compiled. */
export const withoutJitMigration: Migration = {
  name: '036-without-jit',
  worksWith: '021-earlier-versions',
  statements: [],
  own: { sqlite: [], postgres: [withoutJit] },
}
