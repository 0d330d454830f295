import { budgetAmountIn } from '../../domain/budget-text.ts'
import { readBudgetLabel } from '../../domain/declared-budgets.ts'
import { limitsOf, settingKinds, type Declaration, type SettingKind, type Settings } from '../../domain/declared.ts'
import type { Plan } from '../../domain/plans.ts'
import { AccountsError } from '../accounts-error.ts'
import { changePlan, createAccount, resumeAccount, suspendAccount } from '../accounts.ts'
import { controlBackend } from '../backends/backend-controls.ts'
import { setBudget } from '../budgets.ts'
import { auditRecord, type AccountsDeps } from '../control-plane.ts'
import { deleteAccount } from '../delete-account.ts'
import { checkLimits, type LimitBounds } from '../key-limits.ts'
import { createKey, limitKey, maxListedKeys, revokeKey, type MintedKey } from '../keys.ts'
import { putSetting, removeSetting } from '../settings.ts'
import { DeclarationError, planIdOf, type Change, type DeclarationProblem, type Undeclared } from './change.ts'
import { checkTarget, type ServedTarget } from './check-target.ts'
import type { ChangeStore, DeclaredMarks, DeclaredStore, TransactionStore } from './declared-ports.ts'
import { changedKinds, listChanges, type ChangeList } from './plan-changes.ts'
import { readServiceState, type ServiceState } from './service-state.ts'

/** Changes per apply: their transaction holds up other changes (contract 38.7). */
const maxChanges = 1_000
/** How often an apply starts over because something else changed. */
const maxTries = 5

/** What planning and applying a file needs. */
export interface DeclaredDeps extends AccountsDeps<ChangeStore> {
  readonly transactions: DeclaredStore
  /** The settings of the configuration file. */
  readonly configured: Settings
  /** Adds stored settings to the configuration file's. @throws if they do not fit together */
  readonly serve: (stored: Settings) => ServedTarget
}

/** What is applied. */
export interface Applied {
  readonly declaration: Declaration
  /** Whether what an earlier file declared and this one does not is deleted. */
  readonly prune: boolean
  /** Whether an operator changes single objects instead: then no file declares them, and `--prune` leaves them alone. */
  readonly isSingle?: boolean
}

/** What applying a file would change. */
export interface ApplyPlan {
  readonly id: string
  readonly changes: readonly Change[]
  readonly undeclared: readonly Undeclared[]
}

/** A plan as the command line and the admin API write it. */
export function plainPlan({ id, changes, undeclared }: ApplyPlan): Readonly<Record<string, unknown>> {
  return {
    plan: id,
    changes: changes.map(({ action, kind, path, fields, source }) => ({
      action,
      kind,
      path,
      fields: fields.map(({ field, before = null, after = null }) => ({ field, before, after })),
      ...(source === undefined ? {} : { source }),
    })),
    undeclared: undeclared.map(({ path, isManaged, note }) => ({
      path,
      managed: isManaged,
      ...(note === undefined ? {} : { value: note }),
    })),
  }
}

/** A key that an apply created. It can be shown only now. */
interface CreatedKey extends MintedKey {
  readonly accountName: string
}

export interface ApplyResult extends ApplyPlan {
  readonly created: readonly CreatedKey[]
}

/** What stopped an apply: the plan is no longer the approved one, or other changes kept coming. */
export class PlanOutdated extends Error {
  override readonly name = 'PlanOutdated'
}

interface Planned {
  readonly state: ServiceState
  readonly list: ChangeList
  readonly served: ServedTarget
}

/** Compares a file with the service. Changes nothing. @throws DeclarationError, and what `serve` throws */
export async function planDeclaration(deps: DeclaredDeps, applied: Applied): Promise<ApplyPlan> {
  const { list } = await plan(deps, applied)
  return { id: planIdOf(list.changes), changes: list.changes, undeclared: list.undeclared }
}

/**
 * Makes the changes of a file in one transaction, and records that the file declares its objects (contract 38.6). With an
 * approved plan, it makes exactly those changes. @throws PlanOutdated, DeclarationError, AccountsError, and what `serve`
 * throws; then nothing has changed
 */
export async function applyDeclaration(
  deps: DeclaredDeps,
  applied: Applied,
  approvedPlan: string | undefined,
): Promise<ApplyResult> {
  for (let tries = 0; tries < maxTries; tries++) {
    const planned = await plan(deps, applied)
    const { changes, undeclared } = planned.list
    const id = planIdOf(changes)
    if (approvedPlan !== undefined && approvedPlan !== id) throw new PlanOutdated()
    if (changes.length === 0) {
      if (applied.isSingle !== true) await deps.store.markDeclared(marksOf(planned.state, applied.declaration))
      return { id, changes, undeclared, created: [] }
    }
    const created = await deps.transactions.atRevision(planned.state.revision, (store) =>
      makeChanges({ ...deps, store }, planned, applied, id),
    )
    if (created !== 'stale') return { id, changes, undeclared, created }
  }
  throw new PlanOutdated()
}

/**
 * Deletes a stored setting, so that the configuration file's applies, if it has one. @throws DeclarationError if something
 * needs it, AccountsError `setting_unknown`, PlanOutdated
 */
export async function withdrawSetting(deps: DeclaredDeps, kind: SettingKind, name: string): Promise<void> {
  for (let tries = 0; tries < maxTries; tries++) {
    const state = await readServiceState(deps.store, deps.configured, deps.clock.nowMs())
    if (state.settings[kind].get(name)?.isStored !== true) throw new AccountsError('setting_unknown')
    const { stored } = listChanges(state, { settings: {}, uses: {}, accounts: undefined }, false)
    const { [name]: _, ...others } = stored[kind]
    const change: Change = { action: 'delete', kind: changedKinds[kind], path: [kind, name], fields: [] }
    const list = { changes: [change], undeclared: [], stored: { ...stored, [kind]: others } }
    const served = deps.serve(list.stored)
    const problems = checkTarget(state, { settings: {}, uses: {}, accounts: undefined }, list, served)
    if (problems.length > 0) throw new DeclarationError(problems)
    const done = await deps.transactions.atRevision(state.revision, (store) =>
      removeSetting({ ...deps, store }, kind, name),
    )
    if (done !== 'stale') return
  }
  throw new PlanOutdated()
}

async function plan(deps: DeclaredDeps, { declaration, prune }: Applied): Promise<Planned> {
  const state = await readServiceState(deps.store, deps.configured, deps.clock.nowMs())
  const list = listChanges(state, declaration, prune)
  const served = deps.serve(list.stored)
  const problems: DeclarationProblem[] = []
  if (list.changes.length > maxChanges)
    problems.push({
      path: [],
      what: `the file makes ${list.changes.length} changes, more than ${maxChanges}`,
      fix: 'split it into several files, and apply them one after another',
    })
  problems.push(...checkTarget(state, declaration, list, served))
  if (problems.length > 0) throw new DeclarationError(problems)
  return { state, list, served }
}

type ChangeDeps = AccountsDeps<TransactionStore>

/** What one change needs. */
interface Making {
  readonly deps: ChangeDeps
  readonly planned: Planned
  readonly declaration: Declaration
  readonly isSingle: boolean
  /** Ids of accounts, including those just created. */
  readonly accountIds: Map<string, string>
  readonly created: CreatedKey[]
}

async function makeChanges(
  deps: ChangeDeps,
  planned: Planned,
  applied: Applied,
  planId: string,
): Promise<readonly CreatedKey[]> {
  const accountIds = new Map([...planned.state.accounts].map(([name, { account }]) => [name, account.id]))
  const { declaration, isSingle = false } = applied
  const making: Making = { deps, planned, declaration, isSingle, accountIds, created: [] }
  const { changes } = planned.list
  for (const change of changes) await makers[change.kind](making, change)
  if (isSingle) return making.created
  await deps.store.markDeclared(marksOf(planned.state, declaration, accountIds))
  const event = { type: 'settings.applied', plan: planId, changes: changes.length } as const
  await deps.store.appendAudit(auditRecord(deps, event))
  return making.created
}

const makers: Readonly<Record<Change['kind'], (making: Making, change: Change) => Promise<void>>> = {
  plan: changeSetting,
  backend: changeSetting,
  profile: changeSetting,
  account: changeAccount,
  key: changeKey,
  budget: changeBudget,
}

async function changeSetting(
  { deps, planned, declaration, isSingle }: Making,
  { action, path, fields }: Change,
): Promise<void> {
  const kind = settingKinds.find((each) => each === path[0])!
  const name = path[1]!
  if (action === 'delete') return removeSetting(deps, kind, name)
  const before = planned.state.settings[kind].get(name)
  const value = declaration.settings[kind]![name]!
  const use = fields.find(({ field }) => field === 'use')
  const managed = !isSingle || before?.isManaged === true
  if (before?.isStored !== true || fields.length > (use === undefined ? 0 : 1))
    await putSetting(deps, { kind, name, value, managed }, before?.value)
  if (use !== undefined) await changeUse(deps, name, use.before, use.after)
}

async function changeUse(deps: ChangeDeps, backend: string, before: unknown, after: unknown): Promise<void> {
  if (before === 'drained') await controlBackend(deps, { step: 'undrained', backend })
  if (before === 'quarantined') await controlBackend(deps, { step: 'released', backend })
  if (after === 'drained' || after === 'quarantined')
    await controlBackend(deps, { step: after, backend, reason: 'asked' })
}

async function changeAccount(
  { deps, planned, declaration, accountIds }: Making,
  { action, path }: Change,
): Promise<void> {
  const name = path[1]!
  const before = planned.state.accounts.get(name)?.account
  if (action === 'delete') return deleteAccount(deps, before!.id, before!.name)
  const { plan: planId, suspended = before?.suspended ?? false } = declaration.accounts![name]!
  const plans: readonly Plan[] = planned.served.plans
  const account = before ?? (await createAccount(deps, name, planId, plans))
  accountIds.set(name, account.id)
  if (account.planId !== planId) await changePlan(deps, account.id, planId, plans)
  if (account.suspended !== suspended) await (suspended ? suspendAccount : resumeAccount)(deps, account.id)
}

async function changeKey(
  { deps, planned, declaration, accountIds, created }: Making,
  { action, path }: Change,
): Promise<void> {
  const [, accountName = '', , name = ''] = path
  const accountId = accountIds.get(accountName)!
  const before = planned.state.accounts.get(accountName)?.keys.get(name)?.key
  if (action === 'delete') {
    await revokeKey(deps, before!.id)
    return deps.store.unmarkKey(accountId, name)
  }
  const declared = declaration.accounts![accountName]!
  const limits = checkLimits(limitsOf(declared.keys![name]!), boundsOf(planned.served, declared.plan))
  if (before !== undefined) await limitKey(deps, before.id, limits)
  else created.push({ accountName, ...(await createKey(deps, accountId, name, limits)) })
}

/** A budget of a key that the same file creates comes after that key. */
async function changeBudget({ deps, planned, declaration, accountIds }: Making, { path }: Change): Promise<void> {
  const [, accountName = '', , label = ''] = path
  const accountId = accountIds.get(accountName)!
  const { subject, ...kind } = readBudgetLabel(label)!
  const limit = budgetAmountIn(kind.unit, declaration.accounts![accountName]!.budgets![label]!)
  const keys = kind.scope === 'key' ? await deps.store.listKeys(accountId, maxListedKeys) : []
  const key = keys.find(({ name, state }) => name === subject && state === 'active')
  const profiles = planned.served.profiles.map(({ id }) => id)
  await setBudget(deps, accountId, { ...kind, subject: key?.id ?? subject, limit }, 'operator', profiles)
}

function boundsOf({ profiles, plans }: ServedTarget, planId: string): LimitBounds {
  return { profiles: profiles.map(({ id }) => id), plan: plans.find(({ id }) => id === planId) }
}

/** The objects of a file that are not marked yet. */
function marksOf(
  state: ServiceState,
  { settings, accounts = {} }: Declaration,
  ids: ReadonlyMap<string, string> = new Map([...state.accounts].map(([name, { account }]) => [name, account.id])),
): DeclaredMarks {
  const objects = Object.entries(accounts).flatMap(([name, { keys = {} }]) => {
    const accountId = ids.get(name)!
    const known = state.accounts.get(name)
    const own = known?.isManaged === true ? [] : [{ accountId, keyName: '' }]
    const unmarked = Object.keys(keys).filter((keyName) => known?.keys.get(keyName)?.isManaged !== true)
    return [...own, ...unmarked.map((keyName) => ({ accountId, keyName }))]
  })
  return {
    settings: settingKinds.flatMap((kind) =>
      Object.keys(settings[kind] ?? {})
        .filter((name) => {
          const inForce = state.settings[kind].get(name)
          return inForce?.isStored === true && !inForce.isManaged
        })
        .map((name) => ({ kind, name })),
    ),
    objects,
  }
}
