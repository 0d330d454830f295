import { checkReadiness } from '../accounts/managed-access/managed-readiness.ts'
import type { Config } from '../config/config.ts'
import { holdsOf } from '../domain/backend-controls.ts'
import type { Clock } from '../runtime/clock.ts'
import { isManagedOn } from '../domain/managed-access.ts'
import type { RandomBytes } from '../runtime/random.ts'
import type { RouteCaller, RoutePlan, RouteQuestion } from '../domain/route-plan.ts'
import { formatById, relayById } from '../formats/formats.ts'
import { planRoute } from '../gateway/route-planner.ts'
import { CircuitBreakers } from '../gateway/routing/circuit-breakers.ts'
import { openProviders, type Providers } from './providers.ts'
import { openStore } from './storage.ts'
import { databasePath } from '../storage/sqlite/connect-sqlite.ts'
import { proveQuotasOnSqlite } from '../storage/ledger/prove-quotas-sqlite.ts'

/** Says where a request would go. */
type PlanRoute = (asker: RouteCaller, question: RouteQuestion) => Promise<RoutePlan>

/** What plans routes over the parts that requests are routed with. */
export function openRoutePlanner(
  { profiles }: Config,
  { backends, learned }: Pick<Providers, 'backends' | 'learned'>,
  breakers: CircuitBreakers,
): PlanRoute {
  const parts = {
    profiles,
    backends,
    leftOut: (profileId: string, accountId: string) => backends.leftOut(profileId, accountId),
    breakers,
    learned,
    formats: formatById,
    relays: relayById,
  }
  return (asker, question) => planRoute(parts, asker, question)
}

/**
 * Plans one route without the service: by what is configured and kept. What a running service has seen of its backends is
 * in its memory and not in here.
 */
export async function planRouteAlone(
  config: Config,
  needs: { readonly clock: Clock; readonly random: RandomBytes },
  asker: RouteCaller,
  question: RouteQuestion,
): Promise<RoutePlan> {
  const { clock, random } = needs
  await using opened = new AsyncDisposableStack()
  const store = await openStore(config)
  opened.defer(() => store.close())
  const hasManaged = config.backends.some(({ managed }) => managed)
  const proveQuotas = (): Promise<void> => proveQuotasOnSqlite(databasePath(config.dataDir))
  const readiness = hasManaged ? await checkReadiness({ store, proveQuotas, clock }, 'while_on') : undefined
  const managed = { isOn: (provider: string) => readiness !== undefined && isManagedOn(readiness, provider) }
  const providers = opened.use(
    await openProviders(config, { storage: { store }, managed, clock, random, log: () => {} }),
  )
  const breakers = new CircuitBreakers({ clock, random: () => 0, log: () => {} })
  breakers.hold(holdsOf(await store.listBackendControls()))
  return openRoutePlanner(config, providers, breakers)(asker, question)
}
