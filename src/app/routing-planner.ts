import { checkReadiness } from '../accounts/managed-access/managed-readiness.ts'
import type { Config } from '../config/config.ts'
import { holdsOf } from '../domain/backend-controls.ts'
import { isManagedOn } from '../domain/managed-access.ts'
import type { RoutingCaller, RoutingPlan, RoutingQuestion } from '../domain/routing-plan.ts'
import { formatById, relayById } from '../formats/formats.ts'
import { planRouting } from '../gateway/routing-planner.ts'
import { CircuitBreakers } from '../gateway/routing/circuit-breakers.ts'
import { sampleRequest } from '../gateway/routing/sample-request.ts'
import type { Clock } from '../runtime/clock.ts'
import type { Store } from '../storage/store.ts'
import { openProviders, type Providers } from './providers.ts'
import type { Runtime } from './runtime.ts'
import { openStore, proveQuotas } from './storage.ts'

type PlanRouting = (caller: RoutingCaller, question: RoutingQuestion) => Promise<RoutingPlan>

/** Plans routes with the parts that route requests. */
export function openRoutingPlanner(
  served: Pick<Config, 'profiles'>,
  { backends, learned, statistics }: Pick<Providers, 'backends' | 'learned' | 'statistics'>,
  { breakers, clock }: { readonly breakers: CircuitBreakers; readonly clock: Clock },
): PlanRouting {
  const deps = {
    get profiles() {
      return served.profiles
    },
    backends,
    leftOut: (profileId: string, accountId: string) => backends.leftOut(profileId, accountId),
    clock,
    breakers,
    statistics,
    learned,
    formats: formatById,
    relays: relayById,
  }
  return (caller, question) => planRouting(deps, caller, sampleRequest(question))
}

/** Opens the backends as a running service has them. */
export async function openProvidersAlone(runtime: Runtime, store: Store): Promise<Providers> {
  const { config, clock } = runtime
  const hasManaged = config.backends.some(({ managed }) => managed)
  const proofs = { store, proveQuotas: () => proveQuotas(config), clock }
  const readiness = hasManaged ? await checkReadiness(proofs, 'while_on') : undefined
  const managed = { isOn: (provider: string) => readiness !== undefined && isManagedOn(readiness, provider) }
  return await openProviders(runtime, { store, managed })
}

/** Plans one route from the configuration and stored data, without the state that a running service has in memory. */
export async function planRoutingAlone(
  runtime: Runtime,
  caller: RoutingCaller,
  question: RoutingQuestion,
): Promise<RoutingPlan> {
  const { config, clock, log } = runtime
  await using opened = new AsyncDisposableStack()
  const store = await openStore(config)
  opened.defer(() => store.close())
  const providers = opened.use(await openProvidersAlone(runtime, store))
  const breakers = new CircuitBreakers({ clock, random: () => 0, log })
  breakers.hold(holdsOf(await store.listBackendControls()))
  // Awaited: the store closes when this function ends.
  return await openRoutingPlanner(config, providers, { breakers, clock })(caller, question)
}
