import type { PlanSales } from './accounts/billing/billing-plane.ts'
import type { Config } from './config/config.ts'
import type { Clock } from './domain/clock.ts'
import type { EventLog } from './domain/events.ts'
import { idMinter } from './domain/ids.ts'
import type { RandomBytes } from './domain/random.ts'
import type { Storage } from './open-storage.ts'
import { routes } from './web/routes.ts'
import { createWebApp } from './web/web-app.ts'

export interface WebNeeds {
  readonly storage: Storage
  readonly sales: PlanSales
  readonly clock: Clock
  readonly random: RandomBytes
  readonly log: EventLog
}

/** The web app over the parts of the running service. */
export function openWeb(
  config: Config,
  { storage, sales, clock, random, log }: WebNeeds,
): ReturnType<typeof createWebApp> {
  const { store } = storage
  const { pepper } = config.secrets
  return createWebApp(
    {
      appUrl: config.appUrl,
      baseUrl: config.baseUrl,
      mode: config.mode,
      trustedProxies: config.appListen.trustedProxies,
      plans: config.plans,
      sales,
      control: { store, clock, random, pepper },
      identity: { store, clock, random, pepper },
      clock,
      log,
      mintRequestId: idMinter('req_', () => clock.nowMs(), random),
    },
    routes,
  )
}
