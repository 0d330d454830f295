import { beforeAll, describe, expect, test } from 'vitest'
import { connectPostgres } from '../../src/storage/postgres/open-postgres.ts'
import { hasPostgres } from '../postgres.ts'
import { sharedPostgres, type SharedPostgres } from '../shared-postgres.ts'
import { runRollingRestarts } from './rolling-restarts.ts'
import { startTcpBalancer } from './tcp-balancer.ts'

const limitMs = 180_000
/** In this time the proxy notices that a node is no longer ready, also while other tests use the processors. */
const drainDelayMs = 1_500

describe.runIf(hasPostgres('rolling restarts'))('rolling restarts of nodes on PostgreSQL', () => {
  let server: SharedPostgres

  beforeAll(async () => {
    server = await sharedPostgres()
  })

  test(
    'no stream fails while nodes behind a proxy restart one after the other, and each is charged once',
    async () => {
      const databaseUrl = await server.createMigratedDatabase()
      const db = connectPostgres(databaseUrl, { maxConnections: 1 })
      try {
        const report = await runRollingRestarts({
          db,
          databaseUrl,
          startBalancer: startTcpBalancer,
          nodes: 2,
          restarts: 2,
          streams: 30,
          streamMs: 700,
          drainDelayMs,
        })
        const { complete } = report
        expect(complete).toBeGreaterThan(30)
        expect(report).toEqual({
          restarts: 2,
          complete,
          failed: [],
          exits: [],
          wrongRecords: [],
          records: complete,
          used: complete,
        })
      } finally {
        await db.destroy()
      }
    },
    limitMs,
  )
})
