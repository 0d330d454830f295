import type { Kysely } from 'kysely'
import type { Tables } from './schema/schema.ts'

/** The queries of a port: its methods, each with the database as an additional first parameter. */
type Queries<Port> = {
  readonly [Name in keyof Port]: Port[Name] extends (...args: infer Args) => infer Result
    ? (db: Kysely<Tables>, ...args: Args) => Result
    : never
}

/** Implements a port with one query per method. Call the result with an open database of either engine. */
export function defineStore<Port extends object>(queries: Queries<Port>): (db: Kysely<Tables>) => Port {
  const entries = Object.entries(queries) as [string, (db: Kysely<Tables>, ...args: unknown[]) => unknown][]
  return (db) => Object.fromEntries(entries.map(([name, query]) => [name, query.bind(undefined, db)])) as Port
}
