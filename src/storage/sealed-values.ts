import { type Kysely, type RawBuilder, sql, type Transaction } from 'kysely'
import { providerErrorBinding } from '../domain/provider-error.ts'
import { credentialBinding, generationBinding, textBinding, webhookBinding } from '../domain/seal-bindings.ts'
import { type Resealed, sealedPrefix, SealError, type Sealer } from '../runtime/sealer.ts'
import { defineStore } from './define-store.ts'
import type { Tables } from './schema/schema.ts'

/** Values per transaction: a service that writes at the same time waits for one of them at most. */
const batchValues = 20

type Value = string | number | null
type Values = Readonly<Record<string, Value>>

/** A column of encrypted values, and what each of them is bound to. */
interface SealedColumn {
  readonly table: keyof Tables
  readonly column: string
  readonly key: readonly string[]
  /** The columns that `bind` needs, besides the key. */
  readonly bound: readonly string[]
  readonly bind: (row: Values) => readonly string[]
}

const text = (value: Value | undefined): string => String(value)

function ofResponse(column: string, purpose: 'response' | 'input' | 'output'): SealedColumn {
  const bind = ({ account_id: account, id }: Values): readonly string[] => textBinding(text(account), text(id), purpose)
  return { table: 'stored_responses', column, key: ['id'], bound: ['account_id'], bind }
}

function ofWebhook(column: string): SealedColumn {
  const bind = ({ account_id: account, id }: Values): readonly string[] => webhookBinding(text(account), text(id))
  return { table: 'webhooks', column, key: ['id'], bound: ['account_id'], bind }
}

/** Every encrypted value in the database, except sessions of prompts: with another key, they are not even looked for. */
const sealedColumns: readonly SealedColumn[] = [
  {
    table: 'upstreams',
    column: 'sealed_credential',
    key: ['id'],
    bound: ['account_id'],
    bind: ({ account_id: account, id }) => credentialBinding(text(account), text(id)),
  },
  {
    table: 'provider_errors',
    column: 'sealed',
    key: ['id'],
    bound: ['account_id', 'request_id'],
    bind: ({ account_id: account, request_id: request }) =>
      providerErrorBinding(account === null ? null : text(account), text(request)),
  },
  ofWebhook('sealed_secret'),
  ofWebhook('sealed_previous'),
  ofResponse('sealed_response', 'response'),
  ofResponse('sealed_input', 'input'),
  ofResponse('sealed_output', 'output'),
  {
    table: 'conversations',
    column: 'sealed_metadata',
    key: ['id'],
    bound: ['account_id'],
    bind: ({ account_id: account, id }) => textBinding(text(account), text(id), 'metadata'),
  },
  {
    table: 'conversation_items',
    column: 'sealed',
    key: ['conversation_id', 'position'],
    bound: ['account_id'],
    bind: ({ account_id: account, conversation_id: id }) => textBinding(text(account), text(id), 'item'),
  },
  {
    table: 'generations',
    column: 'sealed_response',
    key: ['request_id'],
    bound: ['account_id'],
    bind: ({ account_id: account, request_id: id }) => generationBinding(text(account), text(id), 'response'),
  },
  {
    table: 'generation_chunks',
    column: 'sealed',
    key: ['request_id', 'number'],
    bound: ['account_id'],
    bind: ({ account_id: account, request_id: id, number }) =>
      generationBinding(text(account), text(id), Number(number)),
  },
]

/** The encrypted values of all tables, for changing the sealing key. */
export interface SealedStore {
  /** How many values are not encrypted with one of these keys. */
  countSealedWithOthers(keyIds: readonly string[]): Promise<number>
  /**
   * Encrypts with the current key what another one encrypted, in small transactions, while a service uses the values
   * (contract 31.12). Safe to interrupt and to repeat. `pause` is awaited after each transaction.
   */
  resealValues(sealer: Sealer, currentKeyId: string, pause: () => Promise<void>): Promise<Resealed>
}

/** See `SealedStore`. */
export const sealedStore = defineStore<SealedStore>({
  async countSealedWithOthers(db, keyIds) {
    let count = 0
    for (const column of sealedColumns) {
      const { rows } = await sql<{ count: number }>`select count(*) as count from ${sql.table(column.table)}
        where ${isOther(column, keyIds)}`.execute(db)
      count += rows[0]?.count ?? 0
    }
    return count
  },

  async resealValues(db, sealer, currentKeyId, pause) {
    const counts = { resealed: 0, unreadable: 0 }
    for (const column of sealedColumns) {
      let after: readonly Value[] | undefined
      for (;;) {
        const rows = await readOthers(db, column, currentKeyId, after)
        const replacements = rows.flatMap((row) => replacementOf(column, row, sealer) ?? [])
        await db.transaction().execute(async (transaction) => {
          for (const replacement of replacements) await replace(transaction, column, replacement)
        })
        counts.resealed += replacements.length
        counts.unreadable += rows.length - replacements.length
        const last = rows.at(-1)
        if (last === undefined || rows.length < batchValues) break
        after = column.key.map((name) => last[name]!)
        await pause()
      }
    }
    return counts
  },
})

async function readOthers(
  db: Kysely<Tables>,
  column: SealedColumn,
  currentKeyId: string,
  after: readonly Value[] | undefined,
): Promise<readonly Values[]> {
  const key = sql.join(column.key.map((name) => sql.ref(name)))
  const from = after === undefined ? sql`` : sql` and (${key}) > (${sql.join(after)})`
  const { rows } =
    await sql<Values>`select ${sql.join([...column.key, ...column.bound, column.column].map((name) => sql.ref(name)))}
    from ${sql.table(column.table)} where ${isOther(column, [currentKeyId])}${from}
    order by ${key} limit ${batchValues}`.execute(db)
  return rows
}

function isOther({ column }: SealedColumn, keyIds: readonly string[]): RawBuilder<unknown> {
  const isOtherThan = keyIds
    .map(sealedPrefix)
    .map((prefix) => sql`substr(${sql.ref(column)}, 1, ${prefix.length}) <> ${prefix}`)
  return sql.join([sql`${sql.ref(column)} is not null`, ...isOtherThan], sql` and `)
}

interface Replacement {
  readonly row: Values
  readonly sealed: string
}

/** Undefined if no configured key decrypts it. */
function replacementOf({ column, bind }: SealedColumn, row: Values, sealer: Sealer): Replacement | undefined {
  const binding = bind(row)
  try {
    return { row, sealed: sealer.seal(binding, sealer.open(binding, text(row[column]))) }
  } catch (error) {
    if (error instanceof SealError) return undefined
    throw error
  }
}

/** A value that changed meanwhile is left as it is: it was encrypted with the current key. */
async function replace(
  db: Transaction<Tables>,
  { table, column, key }: SealedColumn,
  { row, sealed }: Replacement,
): Promise<void> {
  const isRow = sql.join(
    key.map((name) => sql`${sql.ref(name)} = ${row[name]}`),
    sql` and `,
  )
  await sql`update ${sql.table(table)} set ${sql.ref(column)} = ${sealed}
    where ${isRow} and ${sql.ref(column)} = ${row[column]}`.execute(db)
}
