import { readdir } from 'node:fs/promises'
import { AuditReviewer } from '../accounts/audit/audit-reviewer.ts'
import { checkpointFailure } from '../accounts/audit/checkpoints.ts'
import type { BackendConfig } from '../config/config.ts'
import { checkpointKeys } from '../domain/checkpoint.ts'
import type { ManagedAccess } from '../gateway/ports.ts'
import type { CircuitBreakers } from '../gateway/routing/circuit-breakers.ts'
import { checkpointFile } from '../storage/checkpoint-file.ts'
import type { ConsoleBackend, ConsoleDeps } from '../web/operator/console-deps.ts'
import { openFilesLimit } from './connection-limits.ts'
import type { Observation } from './observation.ts'
import type { Providers } from './providers.ts'
import { openRoutingPlanner } from './routing-planner.ts'
import type { Runtime } from './runtime.ts'
import type { Status } from './status.ts'
import type { Storage } from './storage.ts'

export interface OpenConsoleDeps {
  readonly storage: Pick<Storage, 'store'>
  readonly providers: Providers
  readonly status: Status
  readonly breakers: CircuitBreakers
  readonly managed: ManagedAccess
  readonly observation: Pick<Observation, 'traffic'>
}

/** What the operators' console reads from the running service and changes in it. */
export function openConsole(runtime: Runtime, deps: OpenConsoleDeps): ConsoleDeps {
  const { config, served, clock, log } = runtime
  const { providers, status, breakers, managed, observation } = deps
  const { store } = deps.storage
  const keys = checkpointKeys(runtime.keys)
  const onFailed = (error: unknown): void => log({ event: 'audit_failing', reason: checkpointFailure(error) })
  return {
    accounts: store,
    audit: new AuditReviewer({ store, keys, memory: checkpointFile(config.dataDir), clock, onFailed }),
    get backends() {
      return served.backends.map(consoleBackend)
    },
    controls: store,
    health: () => status.health(),
    traffic: () => observation.traffic(),
    openFiles,
    planRouting: openRoutingPlanner(served, providers, { breakers, clock }),
    servesManaged: (provider) => managed.isOn(provider),
    incidents: store,
    tickets: store,
    forgetStatus: () => status.board.forget(),
  }
}

function consoleBackend({ id, provider, model, simulated, managed, credential }: BackendConfig): ConsoleBackend {
  const serves = managed ? 'managed' : credential === undefined ? 'everybody' : 'one account'
  return { id, provider: provider.name, model, format: provider.format, simulated, serves }
}

/** How many files and sockets this process has open, and the limit; undefined if the system does not report them. */
async function openFiles(): Promise<{ readonly open: number; readonly limit: number } | undefined> {
  try {
    const limit = openFilesLimit()
    return limit === undefined ? undefined : { open: (await readdir('/proc/self/fd')).length, limit }
  } catch {
    // Not Linux, or the limit is reached. The list of failed requests shows what failed because of it.
    return undefined
  }
}
