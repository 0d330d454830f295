import { type SettingEntries, type Settings } from '../domain/declared.ts'
import { compareText } from '../runtime/compare-text.ts'
import type { Config, Mode } from './config.ts'
import { documentOf, type ConfigDocument } from './document.ts'
import { Findings, type Environment } from './findings.ts'
import { normalSettings } from './normal-settings.ts'
import { ConfigError } from './problems.ts'
import { resolveServed } from './resolve.ts'
import type { ConfigFile } from './schema.ts'

/** The part of a configuration that can be declared while the service runs. */
export type Served = Pick<Config, 'plans' | 'providers' | 'backends' | 'profiles'>

/** A file that declares settings: its name, and the positions in it. */
export interface DeclaredIn {
  readonly name: string
  readonly document: ConfigDocument
}

/** The settings of the configuration file, and how declared ones are added to them (contract 38.1). */
export interface SettingsSource {
  /** The entries of the file, or the default plans, in their normal form. */
  readonly configured: Settings
  /**
   * Resolves the file's entries, replaced and completed by declared ones. Problems have their position in `from`.
   * @throws ConfigError with all problems
   */
  serve(declared: Settings, from?: DeclaredIn): Served
}

interface Origin {
  readonly file: ConfigFile
  readonly mode: Mode
  readonly env: Environment
  readonly needsCredentials: boolean
}

/** The variables of our own secrets, which no backend may send to a provider (contract 38.3). */
const ownVariables = /^SVC_ROUTER_/

export function settingsSource(origin: Origin): SettingsSource {
  const configured = normalSettings(entriesOf(origin.file))
  return {
    configured,
    serve: (declared, from) => serve(origin, configured, declared, from),
  }
}

function entriesOf(file: ConfigFile): Partial<Settings> {
  return file as unknown as Partial<Settings>
}

function serve(origin: Origin, configured: Settings, declared: Settings, from: DeclaredIn | undefined): Served {
  const { file, mode, env, needsCredentials } = origin
  // Declaring the first backend must not remove the simulated ones from a running service.
  const simulated = mode === 'local' && (file.simulated ?? Object.keys(file.backends ?? {}).length === 0)
  const given = entriesOf(file)
  const merged = {
    ...file,
    simulated,
    plans: { ...(file.plans === undefined ? configured.plans : given.plans), ...inOrder(declared.plans, byUnits) },
    backends: { ...given.backends, ...inOrder(declared.backends, byName) },
    profiles: { ...given.profiles, ...inOrder(declared.profiles, byName) },
  }
  const findings = new Findings(documentOf(merged, from?.document), env, needsCredentials)
  const refused = variablesElsewhere(file)
  for (const [id, { credential_env: variable }] of Object.entries(declared.backends))
    if (typeof variable === 'string' && (ownVariables.test(variable) || refused.has(variable)))
      findings.add(
        ['backends', id, 'credential_env'],
        `${variable} contains a secret of the service itself, which must not be sent to a provider`,
        "name the variable with the provider's credential",
      )
  const served = resolveServed(merged as unknown as ConfigFile, mode, findings)
  if (findings.problems.length > 0) {
    const { name = 'declared settings' } = from ?? {}
    throw new ConfigError(name, findings.problems, from === undefined ? 'configuration' : 'declaration')
  }
  return served
}

/** The variables that the configuration file names anywhere but in its backends. */
function variablesElsewhere(file: ConfigFile): ReadonlySet<string> {
  const found = new Set<string>()
  const look = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return
    for (const [name, inner] of Object.entries(value)) {
      if (typeof inner === 'string' && name.endsWith('_env')) found.add(inner)
      else look(inner)
    }
  }
  look({ ...file, backends: undefined })
  return found
}

type Entry = readonly [name: string, value: SettingEntries[string]]

function inOrder(entries: SettingEntries, order: (a: Entry, b: Entry) => number): SettingEntries {
  return Object.fromEntries(Object.entries(entries).toSorted(order))
}

function byName([a]: Entry, [b]: Entry): number {
  return compareText(a, b)
}

/** Plans are ranked in their order: smaller ones first. */
function byUnits(a: Entry, b: Entry): number {
  return unitsOf(a) - unitsOf(b) || byName(a, b)
}

function unitsOf([, { requests_per_month: units }]: Entry): number {
  return typeof units === 'number' ? units : 0
}
