import { AccountsError } from '../../accounts/accounts-error.ts'
import { controlBackend, type BackendCommand } from '../../accounts/backends/backend-controls.ts'
import { applyDeclaration, planDeclaration, plainPlan, withdrawSetting } from '../../accounts/declared/apply.ts'
import { exportState } from '../../accounts/declared/export.ts'
import { readServiceState, readSettingsState, type SettingsState } from '../../accounts/declared/service-state.ts'
import { holdReasons } from '../../domain/backend-controls.ts'
import type { SettingKind } from '../../domain/declared.ts'
import type { JsonObject } from '../../domain/json.ts'
import {
  declaredDepsOf,
  objectIn,
  oneOfIn,
  optionalFlagIn,
  optionalTextIn,
  type AdminCall,
  type AdminHandler,
} from './admin-call.ts'
import { AdminError } from './admin-error.ts'

const plans = handlersFor('plans')
const backends = handlersFor('backends')
const profiles = handlersFor('profiles')

/** Files, plans, backends, and profiles. */
export const settingHandlers = {
  async state(call) {
    const { store, clock } = call.control
    const which = call.query.get('managed') === 'true' ? 'managed' : 'all'
    const { file, omitted } = exportState(await readServiceState(store, call.admin.configured, clock.nowMs()), which)
    return { object: 'state', file, omitted }
  },

  async plan(call) {
    const read = call.admin.readFile(JSON.stringify(objectIn(call.body, 'file')))
    const prune = optionalFlagIn(call.body, 'prune') ?? false
    const planned = await planDeclaration(declaredDepsOf(call, read), { declaration: read.declaration, prune })
    return { object: 'plan', ...plainPlan(planned) }
  },

  async apply(call) {
    const read = call.admin.readFile(JSON.stringify(objectIn(call.body, 'file')))
    const prune = optionalFlagIn(call.body, 'prune') ?? false
    const approved = optionalTextIn(call.body, 'plan')
    const applied = { declaration: read.declaration, prune }
    const deps = declaredDepsOf(call, read)
    const planned = prune && approved === undefined ? await planDeclaration(deps, applied) : undefined
    if (planned?.changes.some(({ action }) => action === 'delete') === true) throw new AdminError('plan_required')
    // With the plan's ID, nothing is deleted that the plan does not list, even if something changes meanwhile.
    const result = await applyDeclaration(deps, applied, approved ?? planned?.id)
    return {
      object: 'applied',
      ...plainPlan(result),
      keys: result.created.map(({ accountName, stored, key }) => ({
        account: accountName,
        id: stored.id,
        name: stored.name,
        key: key.reveal(),
      })),
    }
  },

  listPlans: plans.list,
  getPlan: plans.get,
  putPlan: plans.put,
  deletePlan: plans.delete,
  listBackends: backends.list,
  getBackend: backends.get,
  putBackend: backends.put,
  deleteBackend: backends.delete,
  listProfiles: profiles.list,
  getProfile: profiles.get,
  putProfile: profiles.put,
  deleteProfile: profiles.delete,

  drainBackend: (call) => hold(call, 'drained'),
  quarantineBackend: (call) => hold(call, 'quarantined'),
  undrainBackend: (call) => control(call, { step: 'undrained', backend: call.id }),
  releaseBackend: (call) => control(call, { step: 'released', backend: call.id }),
} as const satisfies Readonly<Record<string, AdminHandler>>

function handlersFor(kind: SettingKind) {
  return {
    list: async (call: AdminCall) => {
      const state = await stateOf(call)
      const names = [...state.settings[kind].keys()].toSorted()
      return { object: 'list', data: names.map((name) => plainSetting(call, state, kind, name)), has_more: false }
    },
    get: async (call: AdminCall) => {
      return plainSetting(call, await stateOf(call), kind, call.id)
    },
    put: async (call: AdminCall) => {
      const read = call.admin.readFile(JSON.stringify({ version: 1, [kind]: { [call.id]: call.body } }))
      const applied = { declaration: read.declaration, prune: false, isSingle: true }
      const { changes, id } = await applyDeclaration(declaredDepsOf(call, read), applied, undefined)
      return { object: 'applied', ...plainPlan({ id, changes, undeclared: [] }) }
    },
    delete: async (call: AdminCall) => {
      const read = call.admin.readFile(JSON.stringify({ version: 1 }))
      await withdrawSetting(declaredDepsOf(call, read), kind, call.id)
      return { object: objectOf(kind), id: call.id, deleted: true }
    },
  } as const satisfies Readonly<Record<string, AdminHandler>>
}

function hold(call: AdminCall, step: 'drained' | 'quarantined'): Promise<object> {
  const reason = oneOfIn(call.body, 'reason', holdReasons, holdReasons[0])
  return control(call, { step, backend: call.id, reason })
}

async function control(call: AdminCall, order: BackendCommand): Promise<object> {
  const state = await stateOf(call)
  const isHold = order.step === 'drained' || order.step === 'quarantined'
  // A backend that was removed can still be released.
  if (isHold && !isServed(call, state)) throw new AccountsError('backend_invalid')
  await controlBackend(call.control, order)
  return { object: 'backend', id: call.id, step: order.step }
}

function isServed({ deps, id }: AdminCall, { settings }: SettingsState): boolean {
  return settings.backends.has(id) || deps.consoleDeps.backends.some((backend) => backend.id === id)
}

function stateOf({ admin, control: { store } }: AdminCall): Promise<SettingsState> {
  return readSettingsState(store, admin.configured)
}

function plainSetting({ admin }: AdminCall, state: SettingsState, kind: SettingKind, id: string): JsonObject {
  const found = state.settings[kind].get(id)
  if (found === undefined) throw new AccountsError('setting_unknown')
  const { value, isStored, isManaged } = found
  return {
    object: objectOf(kind),
    id,
    value,
    source: isStored ? 'declared' : 'configuration',
    managed: isManaged,
    ...(kind === 'backends' ? { use: state.uses.get(id) ?? 'active', breaker: admin.condition(id).state } : {}),
  }
}

function objectOf(kind: SettingKind): string {
  return kind.slice(0, -1)
}
