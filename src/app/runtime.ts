import type { Config } from '../config/config.ts'
import { sealingKeys } from '../config/sealing-keys.ts'
import type { EventLog } from '../domain/events.ts'
import { linksFor, type Links } from '../domain/links.ts'
import type { Clock } from '../runtime/clock.ts'
import { idMinter } from '../runtime/ids.ts'
import type { RandomBytes } from '../runtime/random.ts'
import type { SealingKeys } from '../runtime/sealer.ts'
import type { Secret } from '../runtime/secret.ts'
import { ServedSettings } from './served-settings.ts'

/** What every part of the service uses. The functions of this folder take it as their first argument. */
export interface Runtime {
  /** Its plans, backends, and profiles are those of the start: use `served` instead. */
  readonly config: Config
  /** The plans, backends, and profiles that are in force. */
  readonly served: ServedSettings
  readonly clock: Clock
  readonly random: RandomBytes
  readonly log: EventLog
  /** Encrypt stored values. During a rotation, the previous key still decrypts. */
  readonly keys: SealingKeys
  /** Hash API keys: the current pepper, then, during a rotation, the previous one. */
  readonly peppers: readonly Secret[]
  readonly links: Links
  /** Creates the ID of a request to this service or to a provider. */
  readonly mintRequestId: () => string
}

export function createRuntime(
  config: Config,
  { clock, random, log }: Pick<Runtime, 'clock' | 'random' | 'log'>,
): Runtime {
  return {
    config,
    served: new ServedSettings(config),
    clock,
    random,
    log,
    keys: sealingKeys(config.secrets),
    peppers: peppersIn(config),
    links: linksFor(config.appUrl),
    mintRequestId: idMinter('req_', () => clock.nowMs(), random),
  }
}

/** The same runtime after the system chose ports, which are part of the URLs. */
export function withConfig(runtime: Runtime, config: Config): Runtime {
  return { ...runtime, config, links: linksFor(config.appUrl) }
}

export function peppersIn({ secrets: { pepper, previousPepper } }: Pick<Config, 'secrets'>): readonly Secret[] {
  return previousPepper === undefined ? [pepper] : [pepper, previousPepper]
}
