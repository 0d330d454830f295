import type { Account, StoredKey } from '../../domain/accounts.ts'
import { holdsOf } from '../../domain/backend-controls.ts'
import { amountOut } from '../../domain/budget-text.ts'
import type { Budget } from '../../domain/budgets.ts'
import { writeBudgetLabel } from '../../domain/declared-budgets.ts'
import { settingKinds, type BackendUse, type SettingKind, type Settings } from '../../domain/declared.ts'
import type { JsonObject } from '../../domain/json.ts'
import { maxListedAccounts } from '../accounts.ts'
import type { ChangeStore } from './declared-ports.ts'

/** Maximum number of working keys read: 100 of each of 10,000 accounts. */
const maxKeys = 1_000_000
/** 16 of each of 10,000 accounts. */
const maxBudgets = 160_000

/** A setting that is in force. */
interface SettingInForce {
  readonly value: JsonObject
  /** Whether it is stored, and not only in the configuration file. */
  readonly isStored: boolean
  readonly isManaged: boolean
}

interface KeyInForce {
  readonly key: StoredKey
  readonly isManaged: boolean
}

export interface AccountInForce {
  readonly account: Account
  readonly isManaged: boolean
  /** Its active keys by name. */
  readonly keys: ReadonlyMap<string, KeyInForce>
  /** Names that several active keys have: no file can mean one of them. */
  readonly ambiguousKeys: ReadonlySet<string>
  /** The operator's budgets in US dollars or tokens, by their names in a file. */
  readonly budgets: ReadonlyMap<string, number>
}

/** Plans, backends, and profiles as they are now. */
export interface SettingsState {
  readonly settings: Readonly<Record<SettingKind, ReadonlyMap<string, SettingInForce>>>
  readonly uses: ReadonlyMap<string, BackendUse>
}

/** Everything that a file can declare, as it is now. */
export interface ServiceState extends SettingsState {
  readonly revision: number
  readonly accounts: ReadonlyMap<string, AccountInForce>
}

/** Reads the state. The revision comes first, so that a concurrent change makes it stale. */
export async function readServiceState(store: ChangeStore, configured: Settings, nowMs: number): Promise<ServiceState> {
  const revision = await store.revision()
  const [settings, accounts, keys, marks, budgets] = await Promise.all([
    readSettingsState(store, configured),
    store.listAccounts(maxListedAccounts),
    store.listWorkingKeys(nowMs, maxKeys),
    store.listDeclared(),
    store.listOperatorBudgets(maxBudgets),
  ])
  return {
    revision,
    ...settings,
    accounts: accountsInForce(
      accounts,
      keys,
      budgets,
      new Set(marks.map(({ accountId, keyName }) => markOf(accountId, keyName))),
    ),
  }
}

/** Reads only the settings, because reading all accounts and keys can take a second. */
export async function readSettingsState(
  store: Pick<ChangeStore, 'listSettings' | 'listBackendControls'>,
  configured: Settings,
): Promise<SettingsState> {
  const [stored, controls] = await Promise.all([store.listSettings(), store.listBackendControls()])
  const inForce = (kind: SettingKind): ReadonlyMap<string, SettingInForce> => {
    const entries = new Map<string, SettingInForce>(
      Object.entries(configured[kind]).map(([name, value]) => [name, { value, isStored: false, isManaged: false }]),
    )
    for (const each of stored)
      if (each.kind === kind) entries.set(each.name, { value: each.value, isStored: true, isManaged: each.managed })
    return entries
  }
  const [plans, backends, profiles] = settingKinds.map(inForce)
  return {
    settings: { plans: plans!, backends: backends!, profiles: profiles! },
    uses: new Map([...holdsOf(controls)].map(([id, { kind }]) => [id, kind])),
  }
}

function accountsInForce(
  accounts: readonly Account[],
  keys: readonly StoredKey[],
  budgets: readonly Budget[],
  marks: ReadonlySet<string>,
): ReadonlyMap<string, AccountInForce> {
  const byAccount = Map.groupBy(keys, ({ accountId }) => accountId)
  const budgetsByAccount = Map.groupBy(budgets, ({ accountId }) => accountId)
  return new Map(
    accounts.map((account): [string, AccountInForce] => {
      const byName = Map.groupBy(byAccount.get(account.id) ?? [], ({ name }) => name)
      const named = [...byName].filter(([, all]) => all.length === 1)
      const inForce = named.map(([name, [key]]): [string, KeyInForce] => [
        name,
        { key: key!, isManaged: marks.has(markOf(account.id, name)) },
      ])
      const several = [...byName].filter(([, all]) => all.length > 1).map(([name]) => name)
      return [
        account.name,
        {
          account,
          isManaged: marks.has(markOf(account.id, '')),
          keys: new Map(inForce),
          ambiguousKeys: new Set(several),
          budgets: budgetsInForce(budgetsByAccount.get(account.id) ?? [], new Map(inForce)),
        },
      ]
    }),
  )
}

/** Those that a file can name: of the account, a profile, or a key with a name of its own. */
function budgetsInForce(
  budgets: readonly Budget[],
  keys: ReadonlyMap<string, KeyInForce>,
): ReadonlyMap<string, number> {
  const keyNames = new Map([...keys].map(([name, { key }]) => [key.id, name]))
  return new Map(
    budgets.flatMap((budget): [string, number][] => {
      const subject = budget.scope === 'key' ? keyNames.get(budget.subject) : budget.subject
      if (subject === undefined) return []
      return [[writeBudgetLabel({ ...budget, subject }), amountOut(budget.unit, budget.limit)]]
    }),
  )
}

function markOf(accountId: string, keyName: string): string {
  return `${accountId} ${keyName}`
}
