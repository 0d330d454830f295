import type { Migration } from './migration.ts'

/** Bytes charged per row in addition to its encrypted text. */
const conversationRowBytes = 1024
const itemRowBytes = 256
const conversationBytes = (row: string): string => `length(${row}sealed_metadata) + ${conversationRowBytes}`
const itemBytes = (row: string): string => `length(${row}sealed) + ${itemRowBytes}`

const addTo = (account: string, bytes: string): string =>
  `insert into stored_bytes (account_id, bytes, conversation_bytes) values (${account}, ${bytes}, ${bytes})
    on conflict (account_id) do update set bytes = stored_bytes.bytes + excluded.bytes,
      conversation_bytes = stored_bytes.conversation_bytes + excluded.conversation_bytes;`
const takeFrom = (account: string, bytes: string): string =>
  `update stored_bytes set bytes = bytes - (${bytes}), conversation_bytes = conversation_bytes - (${bytes})
    where account_id = ${account};
  delete from stored_bytes where account_id = ${account} and bytes <= 0;`

const tables = [
  { name: 'conversations', bytesOf: conversationBytes },
  { name: 'conversation_items', bytesOf: itemBytes },
]

/**
 * Encrypted conversations and their items. Triggers add their bytes to the account's stored text; for a changed row the
 * new size is added before the old one is subtracted.
 */
export const conversationsMigration: Migration = {
  name: '018-conversations',
  statements: [
    `create table conversations (
      id text primary key,
      account_id text not null,
      created_at_ms bigint not null,
      last_used_at_ms bigint not null,
      items bigint not null,
      bytes bigint not null,
      next_position bigint not null,
      sealed_metadata text not null
    )`,
    `create index conversations_by_account on conversations (account_id, created_at_ms, id)`,
    `create index conversations_by_use on conversations (last_used_at_ms)`,
    `create table conversation_items (
      conversation_id text not null,
      position bigint not null,
      account_id text not null,
      digest text not null,
      bytes bigint not null,
      sealed text not null,
      primary key (conversation_id, position)
    )`,
    `create unique index conversation_items_by_digest on conversation_items (conversation_id, digest)`,
    `create index conversation_items_by_account on conversation_items (account_id)`,
    `alter table stored_bytes add column conversation_bytes bigint not null default 0`,
  ],
  own: {
    sqlite: [
      ...tables.flatMap(({ name, bytesOf }) => [
        `create trigger ${name}_more after insert on ${name} begin
          ${addTo('new.account_id', bytesOf('new.'))}
        end`,
        `create trigger ${name}_less after delete on ${name} begin
          ${takeFrom('old.account_id', bytesOf('old.'))}
        end`,
      ]),
      `create trigger conversations_changed after update of sealed_metadata on conversations begin
        ${addTo('new.account_id', conversationBytes('new.'))}
        ${takeFrom('old.account_id', conversationBytes('old.'))}
      end`,
    ],
    postgres: tables.flatMap(({ name, bytesOf }) => [
      `create function svc_router_${name}_bytes() returns trigger language plpgsql as $$
      begin
        if tg_op <> 'DELETE' then
          ${addTo('new.account_id', bytesOf('new.'))}
        end if;
        if tg_op <> 'INSERT' then
          ${takeFrom('old.account_id', bytesOf('old.'))}
        end if;
        return null;
      end $$`,
      `create trigger ${name}_kept after insert or delete or update of sealed${name === 'conversations' ? '_metadata' : ''} on ${name}
        for each row execute function svc_router_${name}_bytes()`,
    ]),
  },
}
