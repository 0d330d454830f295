import { AccountsError } from '../../accounts/accounts-error.ts'
import { changePlan, createAccount, maxListedAccounts, resumeAccount, suspendAccount } from '../../accounts/accounts.ts'
import { deleteAccount } from '../../accounts/delete-account.ts'
import { checkLimits } from '../../accounts/key-limits.ts'
import {
  createKey,
  defaultOverlap,
  effectiveState,
  limitKey,
  maxListedKeys,
  revokeKey,
  rotateKey,
} from '../../accounts/keys.ts'
import type { Account, StoredKey } from '../../domain/accounts.ts'
import { declaredKey } from '../../domain/declared.ts'
import type { JsonObject } from '../../domain/json.ts'
import { noLimits, type KeyLimits } from '../../domain/key-limits.ts'
import { rotationOverlapsMs, type RotationOverlap } from '../../domain/keys.ts'
import {
  invalid,
  listIn,
  oneOfIn,
  optionalFlagIn,
  optionalTextIn,
  textIn,
  type AdminCall,
  type AdminHandler,
} from './admin-call.ts'

const usualPage = 100
const maxPage = 1_000
const overlaps = Object.keys(rotationOverlapsMs) as RotationOverlap[]

/** Accounts and their keys. */
export const accountHandlers = {
  async listAccounts({ control, query }) {
    const limit = Number(query.get('limit') ?? usualPage)
    if (!Number.isInteger(limit) || limit < 1 || limit > maxPage)
      throw invalid('limit', `it must be a whole number from 1 to ${maxPage}`, 'send "limit=100"')
    const [name, after] = [query.get('name'), query.get('after')]
    const known = await control.store.listAccounts(maxListedAccounts)
    const last = known.findIndex(({ id }) => id === after)
    if (after !== null && last === -1)
      throw invalid('after', 'there is no account with this ID', 'start again without "after"')
    const from = last + 1
    const listed = known.slice(from).filter((account) => name === null || account.name === name)
    const data = listed.slice(0, limit).map(plainAccount)
    return { object: 'list', data, has_more: listed.length > limit }
  },

  async createAccount({ control, admin, deps, body }) {
    const { plans } = await admin.readServed()
    const planId = optionalTextIn(body, 'plan') ?? deps.defaultPlan
    return plainAccount(await createAccount(control, textIn(body, 'name'), planId, plans))
  },

  getAccount: async (call) => plainAccount(await accountOf(call)),

  async changeAccount(call) {
    const { control, admin, body } = call
    const account = await accountOf(call)
    const { plans } = await admin.readServed()
    const planId = optionalTextIn(body, 'plan') ?? account.planId
    const suspended = optionalFlagIn(body, 'suspended') ?? account.suspended
    if (planId !== account.planId) await changePlan(control, account.id, planId, plans)
    if (suspended !== account.suspended) await (suspended ? suspendAccount : resumeAccount)(control, account.id)
    return plainAccount({ ...account, planId, suspended })
  },

  async deleteAccount(call) {
    const { control, query, id } = call
    await deleteAccount(control, id, query.get('name') ?? '')
    return { object: 'account', id, deleted: true }
  },

  async listKeys(call) {
    const { id } = await accountOf(call)
    const keys = await call.control.store.listKeys(id, maxListedKeys)
    return { object: 'list', data: keys.map((key) => plainKey(call, key)), has_more: false }
  },

  async createKey(call) {
    const { control, body } = call
    const account = await accountOf(call)
    const limits = await readLimits(call, noLimits, account)
    const { key, stored } = await createKey(control, account.id, textIn(body, 'name'), limits)
    return { ...plainKey(call, stored), key: key.reveal() }
  },

  getKey: async (call) => plainKey(call, await keyOf(call)),

  async changeKey(call) {
    const key = await keyOf(call)
    const account = await call.control.store.findAccount(key.accountId)
    const limits = await readLimits(call, key.limits, account)
    return plainKey(call, await limitKey(call.control, key.id, limits))
  },

  async rotateKey(call) {
    const overlap = oneOfIn(call.body, 'overlap', overlaps, defaultOverlap)
    const { key, stored, endsAtMs } = await rotateKey(call.control, call.id, overlap)
    return {
      ...plainKey(call, stored),
      key: key.reveal(),
      replaces: call.id,
      replaced_key_ends_at: writeTime(endsAtMs),
    }
  },

  async revokeKey(call) {
    const key = await revokeKey(call.control, call.id)
    return plainKey(call, { ...key, state: 'revoked' })
  },
} as const satisfies Readonly<Record<string, AdminHandler>>

async function accountOf({ control, id }: AdminCall): Promise<Account> {
  const account = await control.store.findAccount(id)
  if (account === undefined) throw new AccountsError('account_unknown')
  return account
}

async function keyOf({ control, id }: AdminCall): Promise<StoredKey> {
  const key = await control.store.findKey(id)
  if (key === undefined) throw new AccountsError('key_unknown')
  return key
}

/** The limits of a body; those that it does not name stay. */
async function readLimits(
  { admin, body }: AdminCall,
  before: KeyLimits,
  account: Account | undefined,
): Promise<KeyLimits> {
  const perMinute = body['requests_per_minute']
  if (perMinute !== undefined && perMinute !== null && typeof perMinute !== 'number')
    throw invalid('requests_per_minute', 'it must be a whole number', 'send a whole number, or null')
  const profiles = listIn(body, 'profiles')
  const addresses = listIn(body, 'addresses')
  const limits: KeyLimits = {
    profiles: profiles === undefined ? before.profiles : profiles,
    perMinute: perMinute === undefined ? before.perMinute : perMinute,
    addresses: addresses === undefined ? before.addresses : addresses,
  }
  const served = await admin.readServed()
  const plan = served.plans.find(({ id }) => id === account?.planId)
  return checkLimits(limits, { profiles: served.profiles.map(({ id }) => id), plan })
}

function plainAccount({ id, name, planId, suspended, createdAtMs }: Account): JsonObject {
  return { object: 'account', id, name, plan: planId, suspended, created_at: writeTime(createdAtMs) }
}

function plainKey({ deps }: Pick<AdminCall, 'deps'>, key: StoredKey): JsonObject {
  const { id, accountId, name, hint, createdAtMs, endsAtMs, limits } = key
  return {
    object: 'key',
    id,
    account: accountId,
    name,
    hint,
    state: effectiveState(key, deps.clock.nowMs()),
    created_at: writeTime(createdAtMs),
    ends_at: endsAtMs === null ? null : writeTime(endsAtMs),
    limits: { ...declaredKey(limits) },
  }
}

function writeTime(timeMs: number): string {
  return new Date(timeMs).toISOString()
}
