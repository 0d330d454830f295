import { Client } from 'pg'
import { readProof, writeProof } from '../quota-proof.ts'

const connectTimeoutMs = 400
const statementTimeoutMs = 400

/**
 * The same proof as on SQLite: a counter next to the quotas is incremented over one connection and read back over
 * another. It also checks the server's durability settings, since a proof cannot stop the machine. @throws if any of
 * this fails
 */
export async function proveQuotasOnPostgres(url: string): Promise<void> {
  const written = await withClient(url, async (client) => {
    for (const setting of ['fsync', 'synchronous_commit'])
      if ((await firstValue(client, `show ${setting}`)) === 'off')
        throw new Error(`the database does not flush commits to disk (${setting})`)
    return Number(await firstValue(client, writeProof))
  })
  const found = await withClient(url, async (client) => Number(await firstValue(client, readProof)))
  // Also true if one of them is not a number.
  if (!(found >= written)) throw new Error('a write to the quotas could not be read back')
}

async function firstValue(client: Client, statement: string): Promise<unknown> {
  const { rows } = await client.query<Record<string, unknown>>(statement)
  return Object.values(rows[0] ?? {})[0]
}

async function withClient<Value>(url: string, work: (client: Client) => Promise<Value>): Promise<Value> {
  const client = new Client({
    connectionString: url,
    connectionTimeoutMillis: connectTimeoutMs,
    query_timeout: statementTimeoutMs,
    application_name: 'svc-router proof',
  })
  // A broken connection also rejects the pending query.
  client.on('error', () => {})
  try {
    await client.connect()
    return await work(client)
  } finally {
    await client.end()
  }
}
