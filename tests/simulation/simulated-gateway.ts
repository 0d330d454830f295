import { linksFor } from '../../src/domain/links.ts'
import type { Profile } from '../../src/domain/profiles.ts'
import type { RoutingPolicy } from '../../src/domain/routing-policy.ts'
import { formatById, relayById } from '../../src/formats/formats.ts'
import { DigestCache } from '../../src/gateway/auth/digest-cache.ts'
import { KeyCache } from '../../src/gateway/auth/key-cache.ts'
import { Gateway, type GatewayDeps } from '../../src/gateway/gateway.ts'
import type { Backend, Ledger } from '../../src/gateway/ports.ts'
import { LearnedLimits } from '../../src/gateway/routing/learned-limits.ts'

export const plan = { id: 'max', name: 'Max', requestsPerMinute: 1e9, requestsPerMonth: 1e9, premium: true }
export const signals = {
  rateLimit: 10,
  rateRemaining: 9,
  rateReset: 0,
  quotaLimit: 10,
  quotaUsed: 1,
  quotaRemaining: 9,
  quotaReset: 0,
}
export const timeouts = {
  connectMs: 2_000,
  headersMs: 10_000,
  firstContentMs: 30_000,
  wholeAnswerMs: 300_000,
  idleMs: 30_000,
  totalMs: 120_000,
}

interface SimulatedGatewayOptions extends Pick<GatewayDeps, 'clock' | 'breakers' | 'statistics' | 'sessions'> {
  readonly random: () => number
  readonly profileId: string
  readonly routing: RoutingPolicy
  readonly served: readonly Backend[]
  readonly admit: Ledger['admit']
}

/** The real gateway with one profile, for callers who need no key. */
export function simulatedGateway(options: SimulatedGatewayOptions): Gateway {
  const { clock, random, profileId: id, routing, served, admit, ...parts } = options
  const log = (): void => {}
  const profile: Profile = { id, description: '', backends: [], premium: false, quotaUnits: 1, routing }
  const keys = { find: () => Promise.resolve(undefined), revision: () => Promise.resolve(1) }
  return new Gateway({
    ...parts,
    clock,
    learned: new LearnedLimits(clock),
    randomBytes: (length) => Uint8Array.from({ length }, () => random() * 256),
    log,
    links: linksFor('https://example.com'),
    authentication: {
      keys: new KeyCache(keys, clock, log, log),
      digests: new DigestCache([]),
      planById: () => plan,
      findAccount: () => Promise.resolve(undefined),
      nowMs: () => clock.nowMs(),
    },
    profiles: [profile],
    backends: { forProfile: () => served, stillServes: () => true },
    ledger: { admit, signals: () => signals },
    formats: formatById,
    relays: relayById,
    mintId: () => 'x',
    keepAliveMs: 10_000,
  })
}
