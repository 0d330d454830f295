import type { BackendConfig, Config } from '../config/config.ts'
import { ConfigError } from '../config/problems.ts'
import type { Served } from '../config/settings-source.ts'
import { canonicalJson, settingsOf, type Settings } from '../domain/declared.ts'
import type { EventLog } from '../domain/events.ts'
import type { Plan } from '../domain/plans.ts'
import type { Profile } from '../domain/profiles.ts'
import type { Clock } from '../runtime/clock.ts'
import { errorName } from '../runtime/describe-bug.ts'
import { Refresher } from '../runtime/refresher.ts'
import { StoreUnavailable } from '../runtime/store-unavailable.ts'
import type { Store } from '../storage/store.ts'

/**
 * The plans, backends, and profiles that are in force. Parts of the service read them for every request, because
 * operators declare others while it runs (contract 38.1).
 */
export class ServedSettings {
  #served: Served
  #planById: ReadonlyMap<string, Plan>
  #backendIds: readonly string[]
  #isCurrent = true

  constructor(served: Served) {
    this.#served = served
    this.#planById = plansOf(served)
    this.#backendIds = idsOf(served)
  }

  get plans(): readonly Plan[] {
    return this.#served.plans
  }

  get backends(): readonly BackendConfig[] {
    return this.#served.backends
  }

  get backendIds(): readonly string[] {
    return this.#backendIds
  }

  get profiles(): readonly Profile[] {
    return this.#served.profiles
  }

  planById(id: string): Plan | undefined {
    return this.#planById.get(id)
  }

  /** Whether these are the settings that operators declared last (contract 38.9). */
  get isCurrent(): boolean {
    return this.#isCurrent
  }

  replace(served: Served): void {
    this.#isCurrent = true
    this.#served = served
    this.#planById = plansOf(served)
    this.#backendIds = idsOf(served)
  }

  /** Records that other settings were declared that this process cannot use. */
  keep(): void {
    this.#isCurrent = false
  }
}

function idsOf({ backends }: Served): readonly string[] {
  return backends.map(({ id }) => id)
}

function plansOf({ plans }: Served): ReadonlyMap<string, Plan> {
  return new Map(plans.map((plan) => [plan.id, plan]))
}

export interface SettingsWatchDeps {
  readonly config: Config
  readonly served: ServedSettings
  readonly store: Pick<Store, 'listSettings'>
  readonly clock: Pick<Clock, 'after'>
  readonly log: EventLog
  /** Prepares parts that open something for each setting, before the settings are in force. */
  readonly prepare: (served: Served) => Promise<() => void>
}

/**
 * Applies declared settings in this process. While the store is unavailable, and if they do not fit this node's
 * configuration or environment, the last ones stay in force (contract 38.9).
 */
export class SettingsWatch {
  readonly #deps: SettingsWatchDeps
  #inForce: string
  readonly #refresher: Refresher

  constructor(deps: SettingsWatchDeps, inForce: Settings) {
    const { clock, log } = deps
    this.#deps = deps
    this.#inForce = textOf(inForce)
    this.#refresher = new Refresher({
      read: () => this.#read(),
      clock,
      onFailed: (error) => log({ event: 'store_failing', reason: errorName(error) }),
    })
  }

  /** Reads the settings after a change, and retries until the store answers. */
  refresh(): void {
    this.#refresher.refresh()
  }

  close(): void {
    this.#refresher.close()
  }

  async #read(): Promise<void> {
    const { store, config, served, prepare, log } = this.#deps
    const declared = settingsOf(await store.listSettings())
    const text = textOf(declared)
    if (text === this.#inForce || this.#refresher.isClosed) return
    try {
      const next = config.settings.serve(declared)
      const use = await prepare(next)
      served.replace(next)
      use()
    } catch (error) {
      if (error instanceof StoreUnavailable) throw error
      served.keep()
      const path = error instanceof ConfigError ? error.problems[0]?.path : undefined
      log({ event: 'settings_failing', reason: path ?? errorName(error) })
    }
    // Settings that do not fit are not tried again before they change.
    this.#inForce = text
  }
}

function textOf(settings: Settings): string {
  return canonicalJson({ ...settings })
}

/** The stored settings. */
export async function readDeclared(store: Pick<Store, 'listSettings'>): Promise<Settings> {
  return settingsOf(await store.listSettings())
}
