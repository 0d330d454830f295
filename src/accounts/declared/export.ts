import { declaredKey, settingKinds, type DeclaredKey } from '../../domain/declared.ts'
import type { Json, JsonObject } from '../../domain/json.ts'
import { compareText } from '../../runtime/compare-text.ts'
import type { AccountInForce, ServiceState } from './service-state.ts'

export interface Exported {
  /** The state in the form of a file. */
  readonly file: JsonObject
  /** Keys that no file can declare, because several of the account have that name. */
  readonly omitted: readonly (readonly string[])[]
}

/** Writes the state as a file: applying it changes no value. `managed` writes only what a file declared before. */
export function exportState(state: ServiceState, which: 'all' | 'managed'): Exported {
  const isIncluded = ({ isManaged }: { readonly isManaged: boolean }): boolean => which === 'all' || isManaged
  const settings = settingKinds.map((kind) => {
    const included = [...state.settings[kind]].filter(([, entry]) => isIncluded(entry))
    const entries = included.map(([name, { value }]): [string, JsonObject] => {
      const use = kind === 'backends' ? state.uses.get(name) : undefined
      return [name, use === undefined ? value : { ...value, use }]
    })
    return [kind, inOrder(entries)]
  })
  const accounts = [...state.accounts].filter(([, account]) => isIncluded(account))
  return {
    file: {
      version: 1,
      ...(Object.fromEntries(settings) as JsonObject),
      accounts: inOrder(accounts.map(([name, account]) => [name, plainAccount(account, isIncluded)])),
    },
    omitted: accounts.flatMap(([name, { ambiguousKeys }]) =>
      [...ambiguousKeys].toSorted(compareText).map((key) => ['accounts', name, 'keys', key]),
    ),
  }
}

function plainAccount(
  { account, keys, budgets }: AccountInForce,
  isIncluded: (key: { readonly isManaged: boolean }) => boolean,
): JsonObject {
  const included = [...keys].filter(([, key]) => isIncluded(key))
  return {
    plan: account.planId,
    ...(account.suspended ? { suspended: true } : {}),
    keys: inOrder(included.map(([name, { key }]) => [name, plainKey(declaredKey(key.limits))])),
    ...(budgets.size === 0 ? {} : { budgets: inOrder([...budgets]) }),
  }
}

function plainKey(key: DeclaredKey): JsonObject {
  return key as JsonObject
}

function inOrder(entries: readonly (readonly [string, Json])[]): JsonObject {
  return Object.fromEntries(entries.toSorted(([a], [b]) => compareText(a, b)))
}
