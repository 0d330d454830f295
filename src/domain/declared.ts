import { createHash } from 'node:crypto'
import type { HoldKind } from './backend-controls.ts'
import { isObject, type Json, type JsonObject } from './json.ts'
import type { KeyLimits } from './key-limits.ts'

/** The settings that can be declared while the service runs, besides the configuration file (contract 38.1). */
export const settingKinds = ['plans', 'backends', 'profiles'] as const
export type SettingKind = (typeof settingKinds)[number]

/** The entries of one kind by name, in the form of the configuration file. */
export type SettingEntries = Readonly<Record<string, JsonObject>>

/** All entries, in the form of the configuration file. */
export type Settings = Readonly<Record<SettingKind, SettingEntries>>

/** No entries. */
export const noSettings: Settings = { plans: {}, backends: {}, profiles: {} }

/** A stored setting. It replaces the one of the same name in the configuration file. */
export interface StoredSetting {
  readonly kind: SettingKind
  readonly name: string
  readonly value: JsonObject
  /** Whether a file declared it. Only then may `--prune` delete it. */
  readonly managed: boolean
}

/** The stored settings as the maps that the configuration file has. */
export function settingsOf(stored: readonly StoredSetting[]): Settings {
  const entriesOf = (kind: SettingKind): SettingEntries =>
    Object.fromEntries(stored.filter((each) => each.kind === kind).map(({ name, value }) => [name, value]))
  return { plans: entriesOf('plans'), backends: entriesOf('backends'), profiles: entriesOf('profiles') }
}

/** Whether requests are sent to a backend, or why not. */
export type BackendUse = 'active' | HoldKind

/** The declared limits of a key. Absent: no such limit. */
export interface DeclaredKey {
  readonly profiles?: readonly string[] | undefined
  readonly requests_per_minute?: number | undefined
  readonly addresses?: readonly string[] | undefined
}

export interface DeclaredAccount {
  readonly plan: string
  /** Absent: operators decide. */
  readonly suspended?: boolean | undefined
  /** Absent: the file declares no keys of this account, and its keys stay as they are. */
  readonly keys?: Readonly<Record<string, DeclaredKey>> | undefined
  /** The operator's budgets in US dollars or tokens, by name (`readBudgetLabel`). Absent: the file declares none. */
  readonly budgets?: Readonly<Record<string, number>> | undefined
}

/** A checked file. An absent section declares nothing, and its objects stay as they are. */
export interface Declaration {
  readonly settings: Partial<Settings>
  /** The declared use of backends; operators decide about all others. */
  readonly uses: Readonly<Record<string, BackendUse>>
  readonly accounts: Readonly<Record<string, DeclaredAccount>> | undefined
}

/** The limits of a key as the file writes them. */
export function declaredKey({ profiles, perMinute, addresses }: KeyLimits): DeclaredKey {
  return {
    ...(profiles === null ? {} : { profiles }),
    ...(perMinute === null ? {} : { requests_per_minute: perMinute }),
    ...(addresses === null ? {} : { addresses }),
  }
}

/** The same as the limits that are stored. */
export function limitsOf({ profiles, requests_per_minute: perMinute, addresses }: DeclaredKey): KeyLimits {
  return { profiles: profiles ?? null, perMinute: perMinute ?? null, addresses: addresses ?? null }
}

/** A value with the members of all its objects in order, so that equal values have equal texts. */
export function canonicalJson(value: Json | undefined): string {
  if (Array.isArray(value)) return `[${value.map((each) => canonicalJson(each as Json)).join(',')}]`
  if (!isObject(value)) return JSON.stringify(value ?? null)
  const members = Object.entries(value)
    .filter(([, member]) => member !== undefined)
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${canonicalJson(member)}`).join(',')}}`
}

/** The first 16 hexadecimal digits of the SHA-256 of a text: tells values apart without repeating them. */
export function fingerprint(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 16)
}
