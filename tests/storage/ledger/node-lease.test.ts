import {
  type CompiledQuery,
  type DatabaseConnection,
  DummyDriver,
  Kysely,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
  type QueryResult,
} from 'kysely'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { DatabaseClock } from '../../../src/storage/ledger/database-clock.ts'
import { NodeLease } from '../../../src/storage/ledger/node-lease.ts'
import type { Tables } from '../../../src/storage/schema/schema.ts'
import { ManualClock } from '../../gateway/manual-clock.ts'

let clock: ManualClock
let beats: number[]
let inFlight: Set<string>
let unknown: string[]
/** The open requests of the node in the database, and what happens while they are read. */
let open: string[]
let onRead: () => void
let lease: NodeLease

/** A database that only knows heartbeats, of which it notes the times, and the node's open requests. */
class Connection implements DatabaseConnection {
  executeQuery<Row>({ sql }: CompiledQuery): Promise<QueryResult<Row>> {
    const isBeat = sql.startsWith('insert into nodes')
    if (isBeat) beats.push(clock.monotonicMs())
    if (isBeat) return Promise.resolve({ rows: [{ seen_at_ms: clock.nowMs() } as Row] })
    if (!sql.startsWith('select id from requests')) return Promise.resolve({ rows: [] })
    const rows = open.map((id) => ({ id }) as Row)
    onRead()
    return Promise.resolve({ rows })
  }

  async *streamQuery<Row>(): AsyncGenerator<QueryResult<Row>> {}
}

class Driver extends DummyDriver {
  override acquireConnection(): Promise<DatabaseConnection> {
    return Promise.resolve(new Connection())
  }
}

beforeEach(async () => {
  clock = new ManualClock()
  beats = []
  inFlight = new Set()
  unknown = []
  open = []
  onRead = () => {}
  const db = new Kysely<Tables>({
    dialect: {
      createAdapter: () => new PostgresAdapter(),
      createDriver: () => new Driver(),
      createIntrospector: (some) => new PostgresIntrospector(some),
      createQueryCompiler: () => new PostgresQueryCompiler(),
    },
  })
  const databaseClock = new DatabaseClock(clock)
  lease = new NodeLease(
    db,
    'node',
    { clock, databaseClock },
    {
      onBeat: () => {},
      onFailed: () => {},
      inFlight: () => inFlight,
      onOwnRequests: (ids) => unknown.push(...ids),
      onBadRow: () => {},
      report: () => undefined,
    },
  )
  await lease.start()
  beats = []
})
afterEach(() => lease.close())

test('failures that are more frequent than heartbeats do not delay them', async () => {
  const startMs = clock.monotonicMs()
  for (let count = 0; count < 20; count += 1) {
    await clock.advance(100)
    lease.hurry()
  }
  expect(beats.map((atMs) => atMs - startMs)).toEqual([600, 1_100, 1_600])
})

test('a failure makes the next heartbeat earlier, but not later', async () => {
  const startMs = clock.monotonicMs()
  await clock.advance(4_900)
  lease.hurry()
  await clock.advance(100)
  expect(beats.map((atMs) => atMs - startMs)).toEqual([5_000])
})

test('a request that ends while the open requests are read is known', async () => {
  inFlight.add('req_ending')
  open = ['req_ending', 'req_unknown']
  onRead = () => inFlight.delete('req_ending')
  await clock.advance(5_000)
  expect(unknown).toEqual(['req_unknown'])
})
