import type { LookupFunction } from 'node:net'
import type { Clock } from '../../runtime/clock.ts'
import { createAuthenticators } from '../auth/authenticators.ts'
import type { AuthenticatorsOptions, Authenticators } from '../auth/authenticators.ts'
import { ConnectionShare } from './connection-share.ts'
import { createConnector as connectorOfSystem } from './connector.ts'
import { Pool } from './pool.ts'
import type { PoolLimits } from './pool.ts'

const defaultMaxPools = 1024
/** Limits of one pool (contract 30.14). */
const defaultMaxConnections = 4096
const defaultMaxWaiting = 4096
const defaultWaitMs = 2_000

export interface UpstreamPoolsOptions extends Partial<PoolLimits>, AuthenticatorsOptions {
  readonly clock: Clock
  /** The service's version, for `User-Agent: svc-router/<version>`. */
  readonly version: string
  /** Maximum number of connections of all pools together; without it, each pool has its own limit only. */
  readonly maxTotal?: number
  /** Maximum number of open pools; the least recently used is closed first. */
  readonly maxPools?: number
  /** Extra trusted certificates, PEM. */
  readonly ca?: string
  /** Replaces the system's name resolution. */
  readonly lookup?: LookupFunction
  /** Opens connections in place of the system's network. */
  readonly createConnector?: typeof connectorOfSystem
  /** Called with what a listener threw: a bug of ours, never a provider's. */
  readonly onBug?: (error: unknown) => void
  /** Called with the system's error code if this service ran out of resources for connections. */
  readonly onShortage?: (code: string) => void
}

/** The key under which calls share connections: never across credentials. */
interface PoolKey {
  readonly origin: string
  /** Distinguishes credentials; not the credential itself. */
  readonly credential: string
  readonly connectMs: number
  /** Whether only public addresses may be reached (contract 21.9). */
  readonly publicOnly: boolean
}

/** All connections to providers. */
export interface UpstreamPools {
  readonly clock: Clock
  readonly userAgent: string
  readonly onBug: (error: unknown) => void
  readonly authenticators: Authenticators
  /** The pool for that key, opened if needed. Call again once it is `retired`. */
  pool(key: PoolKey): Pool
  /** Marks a pool as used, so that it is not evicted. */
  touch(pool: Pool): void
  /** Current numbers of pools, connections, their places, open calls, and calls that wait for a connection. */
  counts(): { pools: number; connections: number; places: number; open: number; waiting: number }
  /** Rejects new calls, waits up to `limitMs` for running ones, then aborts them. */
  close(limitMs: number): Promise<void>
}

/** Opens no connections yet. Close it at the end. */
export function createUpstreamPools(options: UpstreamPoolsOptions): UpstreamPools {
  const { clock, maxPools = defaultMaxPools, ca, lookup, onShortage, createConnector = connectorOfSystem } = options
  const limits: PoolLimits = {
    maxConnections: options.maxConnections ?? defaultMaxConnections,
    maxWaiting: options.maxWaiting ?? defaultMaxWaiting,
    waitMs: options.waitMs ?? defaultWaitMs,
  }
  const share = new ConnectionShare(options.maxTotal ?? Number.POSITIVE_INFINITY)
  const onBug = options.onBug ?? rethrow
  const pools = new Map<string, Pool>()
  /** Evicted pools that still have calls. */
  const leaving = new Set<Pool>()
  let uses = 0
  let closed = false
  let tellEmpty: (() => void) | undefined

  const onEmpty = (pool: Pool): void => {
    leaving.delete(pool)
    if (leaving.size === 0) tellEmpty?.()
  }

  const retire = (key: string, pool: Pool): void => {
    pools.delete(key)
    leaving.add(pool)
    pool.retire()
  }

  const retireOldest = (): void => {
    const oldest = leastRecentlyUsed(pools)
    if (oldest !== undefined) retire(...oldest)
  }

  return {
    clock,
    userAgent: `svc-router/${options.version}`,
    onBug,
    authenticators: createAuthenticators(options),
    pool({ origin, credential, connectMs, publicOnly }) {
      const key = `${origin} ${connectMs} ${publicOnly} ${credential}`
      const known = pools.get(key)
      if (known !== undefined) return known
      const connect = createConnector(origin, { clock, connectMs, publicOnly, ca, lookup, onShortage })
      const pool = new Pool(connect, share, limits, clock, onBug, onEmpty)
      if (closed) {
        pool.retire()
        return pool
      }
      if (pools.size >= maxPools) retireOldest()
      pools.set(key, pool)
      return pool
    },
    touch(pool) {
      uses += 1
      pool.lastUse = uses
    },
    counts: () => countsOf([...pools.values(), ...leaving], share.taken),
    async close(limitMs) {
      closed = true
      for (const [key, pool] of pools) retire(key, pool)
      if (leaving.size > 0) {
        await new Promise<void>((resolve) => {
          const timer = clock.after(limitMs, resolve)
          tellEmpty = () => {
            timer.cancel()
            resolve()
          }
        })
      }
      for (const pool of leaving) pool.destroy()
      leaving.clear()
    },
  }
}

/** Without a handler, a bug becomes an uncaught exception. */
function rethrow(error: unknown): void {
  queueMicrotask(() => {
    throw error
  })
}

function leastRecentlyUsed(pools: ReadonlyMap<string, Pool>): readonly [key: string, pool: Pool] | undefined {
  let oldest: readonly [string, Pool] | undefined
  for (const entry of pools) {
    if (oldest === undefined || entry[1].lastUse < oldest[1].lastUse) oldest = entry
  }
  return oldest
}

function countsOf(pools: readonly Pool[], places: number): ReturnType<UpstreamPools['counts']> {
  return {
    pools: pools.length,
    connections: pools.reduce((sum, pool) => sum + pool.connections, 0),
    places,
    open: pools.reduce((sum, pool) => sum + pool.open, 0),
    waiting: pools.reduce((sum, pool) => sum + pool.waiting, 0),
  }
}
