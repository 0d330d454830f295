import type { Migration } from './migration.ts'

const bytesOf = (row: string): string =>
  ['sealed_response', 'sealed_input', 'sealed_output'].map((column) => `length(${row}${column})`).join(' + ')

/** Bytes of encrypted text stored per account, maintained by triggers on every change. */
export const storedBytesMigration: Migration = {
  name: '016-stored-bytes',
  statements: [
    `create table stored_bytes (account_id text primary key, bytes bigint not null)`,
    `insert into stored_bytes (account_id, bytes)
      select account_id, sum(${bytesOf('')}) from stored_responses group by account_id`,
  ],
  own: {
    sqlite: [
      `create trigger stored_bytes_more after insert on stored_responses begin
        insert into stored_bytes (account_id, bytes) values (new.account_id, ${bytesOf('new.')})
          on conflict (account_id) do update set bytes = bytes + excluded.bytes;
      end`,
      `create trigger stored_bytes_less after delete on stored_responses begin
        update stored_bytes set bytes = bytes - (${bytesOf('old.')}) where account_id = old.account_id;
        delete from stored_bytes where account_id = old.account_id and bytes <= 0;
      end`,
    ],
    postgres: [
      `create function svc_router_stored_bytes() returns trigger language plpgsql as $$
      begin
        if tg_op = 'INSERT' then
          insert into stored_bytes (account_id, bytes) values (new.account_id, ${bytesOf('new.')})
            on conflict (account_id) do update set bytes = stored_bytes.bytes + excluded.bytes;
        else
          update stored_bytes set bytes = bytes - (${bytesOf('old.')}) where account_id = old.account_id;
          delete from stored_bytes where account_id = old.account_id and bytes <= 0;
        end if;
        return null;
      end $$`,
      `create trigger stored_bytes_kept after insert or delete on stored_responses
        for each row execute function svc_router_stored_bytes()`,
    ],
  },
}
