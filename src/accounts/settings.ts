import { auditValueShape, type AuditEvent } from '../domain/audit.ts'
import { canonicalJson, fingerprint, type SettingKind, type StoredSetting } from '../domain/declared.ts'
import { isObject, type Json, type JsonObject } from '../domain/json.ts'
import { compareText } from '../runtime/compare-text.ts'
import { AccountsError } from './accounts-error.ts'
import { auditRecord, type AccountsDeps } from './control-plane.ts'
import type { DeclaredQueries } from './declared/declared-ports.ts'

/** One field that differs between two values. */
export interface FieldChange {
  /** Its path within the object, such as `timeouts.connect`. */
  readonly field: string
  /** Absent if the field was not set. */
  readonly before?: Json | undefined
  readonly after?: Json | undefined
}

/** The fields that differ, by name. Lists are compared as a whole. */
export function fieldChanges(before: JsonObject | undefined, after: JsonObject | undefined): readonly FieldChange[] {
  const old = fieldsOf(before)
  const next = fieldsOf(after)
  return [...new Set([...old.keys(), ...next.keys()])]
    .toSorted(compareText)
    .map((field) => ({ field, before: old.get(field), after: next.get(field) }))
    .filter((each) => canonicalJson(each.before) !== canonicalJson(each.after))
}

function fieldsOf(value: JsonObject | undefined, prefix = ''): ReadonlyMap<string, Json> {
  const fields = new Map<string, Json>()
  for (const [name, inner] of Object.entries(value ?? {})) {
    if (isObject(inner)) for (const [path, leaf] of fieldsOf(inner, `${prefix}${name}.`)) fields.set(path, leaf)
    else if (inner !== undefined) fields.set(prefix + name, inner)
  }
  return fields
}

/**
 * Stores a plan, backend, or profile, which running services then use instead of the configuration file's. The value must
 * be checked. `before` is the value in force, for the audit log (contract 38.10).
 */
export async function putSetting(
  deps: AccountsDeps<Pick<DeclaredQueries, 'putSetting'>>,
  setting: StoredSetting,
  before: JsonObject | undefined,
): Promise<void> {
  const { kind, name, value } = setting
  const changes = fieldChanges(before, value)
  const isAdopted = changes.length === 0
  const events = (isAdopted ? fieldChanges(undefined, value) : changes).map((each): AuditEvent => ({
    type: 'setting.changed',
    setting: `${kind}.${name}`,
    field: each.field,
    before: auditValue(each.before),
    after: auditValue(each.after),
  }))
  // Its values are recorded, too: other nodes may have had others.
  if (isAdopted) events.unshift({ type: 'setting.declared', setting: `${kind}.${name}` })
  const records = events.map((event) => auditRecord(deps, event))
  await deps.store.putSetting(setting, records)
}

/** Deletes a stored setting. @throws AccountsError `setting_unknown` */
export async function removeSetting(
  deps: AccountsDeps<Pick<DeclaredQueries, 'deleteSetting'>>,
  kind: SettingKind,
  name: string,
): Promise<void> {
  const event: AuditEvent = { type: 'setting.removed', setting: `${kind}.${name}` }
  if (!(await deps.store.deleteSetting(kind, name, auditRecord(deps, event))))
    throw new AccountsError('setting_unknown')
}

/** A value as the audit log holds it, which takes no free text. */
function auditValue(value: Json | undefined): string {
  if (value === undefined) return 'none'
  const text = Array.isArray(value) ? value.join(',') : typeof value === 'string' ? value : JSON.stringify(value)
  return auditValueShape.test(text) ? text : `sha256-${fingerprint(text)}`
}
