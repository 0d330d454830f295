import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Kysely } from 'kysely'
import { Client } from 'pg'
import { type SimulatedProvider, startSimulatedProvider } from '../../src/simulation/providers/simulated-provider.ts'
import { connectPostgres } from '../../src/storage/postgres/open-postgres.ts'
import type { Tables } from '../../src/storage/schema/schema.ts'
import { hasFakeTime } from '../fake-time.ts'
import { hasPgBouncer, startPgBouncer } from '../pgbouncer.ts'
import { type HaProxy, startHaProxy } from './haproxy.ts'
import { ClusterNode } from './node.ts'
import { PatroniCluster, waitFor } from './patroni.ts'

const databaseServers = 3
const readyLimitMs = 60_000

/**
 * Nodes of the service behind HAProxy, on PostgreSQL under Patroni, the last of them through PgBouncer, and a provider that
 * answers everything.
 */
export interface World {
  readonly nodes: readonly ClusterNode[]
  readonly cluster: PatroniCluster
  readonly balancer: HaProxy
  readonly provider: SimulatedProvider
  /** The database, through the balancer. */
  readonly db: Kysely<Tables>
  waitUntilReady(): Promise<void>
  /** Stops everything that was started. */
  stop(): Promise<void>
}

export async function startWorld(count: number, settings: object, env: NodeJS.ProcessEnv): Promise<World> {
  const folder = mkdtempSync(join(tmpdir(), 'svc-router-cluster-'))
  // PostgreSQL may run as another user.
  chmodSync(folder, 0o711)
  await using started = new AsyncDisposableStack()
  started.defer(() => rmSync(folder, { recursive: true, force: true }))
  const provider = await startSimulatedProvider({ name: 'alpha' })
  started.defer(() => provider.close())
  const cluster = await PatroniCluster.start(folder, databaseServers)
  started.defer(() => cluster.stop())
  const canFakeTime = hasFakeTime('nodes with wrong clocks')
  const nodes: ClusterNode[] = []
  for (let number = 1; number <= count; number++) {
    // The balancer's ports are known after it has started, and it needs the links of the nodes.
    const databaseUrl = 'postgres://svc@127.0.0.1:1/svc'
    const options = {
      folder: join(folder, `node${number}`),
      databaseUrl,
      provider,
      settings,
      env,
      hasFakeTime: canFakeTime,
    }
    const node = await ClusterNode.create(options)
    nodes.push(node)
    started.defer(() => node.stop())
  }
  const nodePorts = nodes.map(({ fromBalancer }) => fromBalancer.port)
  const balancer = await startHaProxy(folder, { nodePorts, databases: cluster.members })
  started.defer(() => balancer.stop())
  for (const { toDatabase } of nodes) toDatabase.target = balancer.databasePort
  await createDatabase(balancer.databasePort)
  const databaseUrl = `postgres://svc@127.0.0.1:${balancer.databasePort}/svc`
  if (hasPgBouncer('a node behind PgBouncer')) {
    const bouncer = await startPgBouncer(databaseUrl)
    started.defer(() => bouncer.stop())
    nodes.at(-1)!.toDatabase.target = Number(new URL(bouncer.url).port)
  }
  const db = connectPostgres(databaseUrl, { maxConnections: 8 })
  started.defer(() => db.destroy())
  await Promise.all(nodes.map((node) => node.start()))
  const all = started.move()
  const isReady = async (): Promise<boolean> => (await Promise.all(nodes.map((node) => node.isReady()))).every(Boolean)
  return {
    nodes,
    cluster,
    balancer,
    provider,
    db,
    waitUntilReady: () => waitFor('every node is ready', isReady, readyLimitMs),
    stop: () => all.disposeAsync(),
  }
}

/** HAProxy needs a moment to find the primary. */
async function createDatabase(port: number): Promise<void> {
  await waitFor(
    'the database',
    async () => {
      const client = new Client({ connectionString: `postgres://svc@127.0.0.1:${port}/postgres` })
      client.on('error', () => {})
      try {
        await client.connect()
        await client.query('create database svc')
        return true
      } catch {
        return false
      } finally {
        await client.end()
      }
    },
    readyLimitMs,
  )
}
