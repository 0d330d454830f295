import type { StatusBoard } from './accounts/status-board.ts'
import type { BackendConfig, Config } from './config/config.ts'
import type { ManagedAccess } from './gateway/ports.ts'
import type { BackendsHealth } from './gateway/routing/health.ts'
import type { Providers } from './open-providers.ts'
import { openRoutePlanner } from './open-routing.ts'
import type { Storage } from './open-storage.ts'
import type { DeskBackend, OperatorDesk } from './web/operator/desk.ts'

export interface DeskNeeds {
  readonly storage: Pick<Storage, 'store'>
  readonly providers: Providers
  readonly status: Pick<StatusBoard, 'lastHour' | 'forget'>
  readonly health: BackendsHealth
  readonly managed: ManagedAccess
}

/** What the console steers the running service with. */
export function openOperatorDesk(
  config: Config,
  { storage, providers, status, health, managed }: DeskNeeds,
): OperatorDesk {
  const { store } = storage
  return {
    backends: config.backends.map(deskBackend),
    controls: store,
    condition: (id) => health.condition(id),
    lastHour: (id) => status.lastHour(id),
    planRoute: openRoutePlanner(config, providers, health),
    servesManaged: (provider) => managed.isOn(provider),
    incidents: store,
    tickets: store,
    forgetStatus: () => status.forget(),
  }
}

function deskBackend({ id, provider, model, simulated, managed, credential }: BackendConfig): DeskBackend {
  const serves = managed ? 'managed' : credential === undefined ? 'everybody' : 'one account'
  return { id, provider: provider.name, model, format: provider.format, simulated, serves }
}
