import { readBudgetLabel, writeBudgetLabel } from '../../domain/declared-budgets.ts'
import {
  declaredKey,
  settingKinds,
  type BackendUse,
  type Declaration,
  type DeclaredAccount,
  type DeclaredKey,
  type SettingEntries,
  type SettingKind,
  type Settings,
} from '../../domain/declared.ts'
import type { JsonObject } from '../../domain/json.ts'
import { compareText } from '../../runtime/compare-text.ts'
import { readNetwork } from '../../runtime/networks.ts'
import { fieldChanges, type FieldChange } from '../settings.ts'
import type { Change, ChangedKind, Undeclared } from './change.ts'
import type { AccountInForce, ServiceState } from './service-state.ts'

/** What a file changes (contract 38.5, 38.8). */
export interface ChangeList {
  /** In the order in which they are made: what others refer to comes first, and deletions last. */
  readonly changes: readonly Change[]
  readonly undeclared: readonly Undeclared[]
  /** The stored settings after the change. */
  readonly stored: Settings
}

/** What an entry of each kind is. */
export const changedKinds: Readonly<Record<SettingKind, ChangedKind>> = {
  plans: 'plan',
  backends: 'backend',
  profiles: 'profile',
}

/**
 * Compares a file with the state. Sections, keys, and uses that the file omits stay as they are. Only `prune` deletes, and
 * only what an earlier file declared.
 */
export function listChanges(state: ServiceState, declaration: Declaration, prune: boolean): ChangeList {
  const found: Found = { changes: [], undeclared: [], prune }
  const stored = settingKinds.map((kind) => compareSettings(found, state, declaration, kind))
  compareUses(found, state, declaration)
  compareAccounts(found, state, declaration.accounts)
  const deletions = found.changes.filter(({ action }) => action === 'delete').toReversed()
  return {
    changes: [...found.changes.filter(({ action }) => action !== 'delete'), ...deletions],
    undeclared: found.undeclared,
    stored: { plans: stored[0]!, backends: stored[1]!, profiles: stored[2]! },
  }
}

interface Found {
  readonly changes: Change[]
  readonly undeclared: Undeclared[]
  readonly prune: boolean
}

/** Returns the stored entries after the change. */
function compareSettings(
  found: Found,
  state: ServiceState,
  { settings, uses }: Declaration,
  kind: SettingKind,
): SettingEntries {
  const declared = settings[kind]
  const inForce = state.settings[kind]
  const stored = new Map([...inForce].filter(([, { isStored }]) => isStored).map(([name, { value }]) => [name, value]))
  if (declared === undefined) return Object.fromEntries(stored)
  for (const [name, value] of inOrder(declared)) {
    const before = inForce.get(name)
    stored.set(name, value)
    const use = kind === 'backends' ? useChange(state, name, Object.hasOwn(uses, name) ? uses[name] : undefined) : []
    const fields = [...fieldChanges(before?.value, value), ...use]
    // An entry of the configuration is stored even if it is the same, because other nodes may have another one.
    if (fields.length === 0 && before?.isStored === true) continue
    const isAdopted = before?.isStored === false && fields.length === use.length
    found.changes.push({
      action: before === undefined || isAdopted ? 'create' : 'update',
      kind: changedKinds[kind],
      path: [kind, name],
      fields,
      ...(isAdopted ? { source: 'configuration' } : {}),
    })
  }
  for (const [name, { isStored, isManaged }] of inOrder(Object.fromEntries(inForce))) {
    if (!isStored || Object.hasOwn(declared, name)) continue
    const fields = fieldChanges(inForce.get(name)?.value, undefined)
    if (leaveOut(found, { kind: changedKinds[kind], path: [kind, name], isManaged, fields })) stored.delete(name)
  }
  return Object.fromEntries(stored)
}

function useChange(state: ServiceState, name: string, declared: BackendUse | undefined): readonly FieldChange[] {
  const before = state.uses.get(name) ?? 'active'
  return declared === undefined || declared === before ? [] : [{ field: 'use', before, after: declared }]
}

/** What operators decided about backends, and the file does not mention. */
function compareUses({ undeclared }: Found, state: ServiceState, { settings, uses }: Declaration): void {
  if (settings.backends === undefined) return
  for (const [name, use] of [...state.uses].toSorted(([a], [b]) => compareText(a, b)))
    if (!Object.hasOwn(uses, name)) undeclared.push({ path: ['backends', name, 'use'], isManaged: false, note: use })
}

function compareAccounts(found: Found, state: ServiceState, declared: Declaration['accounts']): void {
  if (declared === undefined) return
  for (const [name, account] of inOrder(declared)) compareAccount(found, name, account, state.accounts.get(name))
  for (const [name, { isManaged, account, keys }] of inOrder(Object.fromEntries(state.accounts))) {
    if (Object.hasOwn(declared, name)) continue
    const lost = { plan: account.planId, keys: [...keys.keys()].toSorted(compareText) }
    leaveOut(found, { kind: 'account', path: ['accounts', name], isManaged, fields: fieldChanges(lost, undefined) })
  }
}

function compareAccount(
  found: Found,
  name: string,
  declared: DeclaredAccount,
  before: AccountInForce | undefined,
): void {
  const path = ['accounts', name]
  const suspended = before?.account.suspended ?? false
  const values = (plan: string | undefined, isSuspended: boolean): JsonObject => ({
    plan,
    ...(isSuspended ? { suspended: true } : {}),
  })
  const fields = fieldChanges(
    before === undefined ? undefined : values(before.account.planId, suspended),
    values(declared.plan, declared.suspended ?? suspended),
  )
  if (fields.length > 0)
    found.changes.push({ action: before === undefined ? 'create' : 'update', kind: 'account', path, fields })
  if (declared.suspended === undefined && suspended)
    found.undeclared.push({ path: [...path, 'suspended'], isManaged: false, note: 'true' })
  if (declared.keys !== undefined) compareKeys(found, [...path, 'keys'], declared.keys, before)
  if (declared.budgets !== undefined) compareBudgets(found, [...path, 'budgets'], declared.budgets, before)
}

function compareKeys(
  found: Found,
  path: readonly string[],
  declared: Readonly<Record<string, DeclaredKey>>,
  account: AccountInForce | undefined,
): void {
  for (const [name, key] of inOrder(declared)) {
    const before = account?.keys.get(name)
    const old = before === undefined ? undefined : comparable(declaredKey(before.key.limits))
    const fields = fieldChanges(old, comparable(key))
    // A new key without limits has no fields, and is a change.
    if (before === undefined || fields.length > 0)
      found.changes.push({
        action: before === undefined ? 'create' : 'update',
        kind: 'key',
        path: [...path, name],
        fields,
      })
  }
  const names = [...(account?.keys.keys() ?? []), ...(account?.ambiguousKeys ?? [])].toSorted(compareText)
  for (const name of names) {
    if (Object.hasOwn(declared, name)) continue
    const isManaged = account?.keys.get(name)?.isManaged ?? false
    leaveOut(found, { kind: 'key', path: [...path, name], isManaged, fields: [] })
  }
}

/** Operators' budgets that the file does not name stay: nobody should lose a limit because a line is missing. */
function compareBudgets(
  { changes, undeclared }: Found,
  path: readonly string[],
  declared: Readonly<Record<string, number>>,
  account: AccountInForce | undefined,
): void {
  const named = new Set<string>()
  for (const [given, limit] of inOrder(declared)) {
    const kind = readBudgetLabel(given)
    const label = kind === undefined ? given : writeBudgetLabel(kind)
    named.add(label)
    const before = account?.budgets.get(label)
    if (before === limit) continue
    const fields = [{ field: 'limit', before, after: limit }]
    changes.push({ action: before === undefined ? 'create' : 'update', kind: 'budget', path: [...path, given], fields })
  }
  for (const label of [...(account?.budgets.keys() ?? [])].toSorted(compareText))
    if (!named.has(label)) undeclared.push({ path: [...path, label], isManaged: false })
}

/** The limits in one form: lists are sorted and without duplicates, because their order has no meaning. */
function comparable({ profiles, addresses, ...rest }: DeclaredKey): JsonObject {
  const listed = (values: readonly string[]): readonly string[] => [...new Set(values)].toSorted(compareText)
  return {
    ...rest,
    ...(profiles === undefined ? {} : { profiles: listed(profiles) }),
    ...(addresses === undefined ? {} : { addresses: listed(addresses.map((text) => readNetwork(text) ?? text)) }),
  }
}

interface LeftOut extends Undeclared {
  readonly kind: ChangedKind
  /** What a deletion would lose. */
  readonly fields: readonly FieldChange[]
}

/** Deletes an object that the file does not have, or reports it. Returns whether it is deleted. */
function leaveOut({ changes, undeclared, prune }: Found, { kind, path, isManaged, fields }: LeftOut): boolean {
  if (prune && isManaged) changes.push({ action: 'delete', kind, path, fields })
  else undeclared.push({ path, isManaged })
  return prune && isManaged
}

function inOrder<Value>(entries: Readonly<Record<string, Value>>): readonly (readonly [string, Value])[] {
  return Object.entries(entries).toSorted(([a], [b]) => compareText(a, b))
}
