import type { AdminScope } from '../domain/admin-tokens.ts'
import { holdReasons } from '../domain/backend-controls.ts'
import { budgetWindows } from '../domain/budgets.ts'
import { rotationOverlapsMs } from '../domain/keys.ts'
import type { Schema } from './operation.ts'

/** One operation of the admin API (contract 38.11). */
export interface AdminOperation {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** `{name}` is a parameter; a profile's may contain a slash. */
  readonly path: string
  /** What the token must be allowed to do. */
  readonly scope: AdminScope
  readonly summary: string
  /** What a 200 response contains. */
  readonly answer: string
  readonly query?: Readonly<Record<string, Schema>>
  readonly body?: AdminBody
}

interface AdminBody {
  readonly required: readonly string[]
  readonly fields: Readonly<Record<string, Schema>>
  /** Whether it has other fields, described in the configuration file's schema. */
  readonly isSetting?: true
}

const text: Schema = { type: 'string' }
const flag: Schema = { type: 'boolean' }
const limits: Readonly<Record<string, Schema>> = {
  profiles: { type: ['array', 'null'], items: text, description: 'The only profiles it may use. Null: all.' },
  requests_per_minute: {
    type: ['integer', 'null'],
    minimum: 1,
    description: "Requests per minute, at most the plan's limit. Null: the plan's limit.",
  },
  addresses: {
    type: ['array', 'null'],
    items: text,
    description: 'The IP addresses and networks that it may be used from. Null: any.',
  },
}
const file: Schema = { type: 'object', description: 'The content of a file for `svc-router apply`, in JSON.' }
const prune: Schema = {
  ...flag,
  description:
    'Also delete objects that an earlier file declared and this file omits, except budgets. Sections that the file does not have are left alone.',
}
const base = '/admin/v1'

function holdBody(): AdminBody {
  return { required: [], fields: { reason: { enum: holdReasons, description: `Default ${holdReasons[0]}.` } } }
}

function setting(noun: string, path: string) {
  return {
    list: {
      method: 'GET',
      path: `${base}/${path}`,
      scope: 'read',
      summary: `List ${noun}s`,
      answer: `The ${noun}s in effect.`,
    },
    get: {
      method: 'GET',
      path: `${base}/${path}/{id}`,
      scope: 'read',
      summary: `Get a ${noun}`,
      answer: `The ${noun}.`,
    },
    put: {
      method: 'PUT',
      path: `${base}/${path}/{id}`,
      scope: 'write',
      summary: `Create or replace a ${noun}`,
      answer: 'The changes that were made.',
      body: { required: [], fields: {}, isSetting: true },
    },
    delete: {
      method: 'DELETE',
      path: `${base}/${path}/{id}`,
      scope: 'write',
      summary: `Delete a declared ${noun}`,
      answer: `If the configuration file has a ${noun} of that name, it applies from now on.`,
    },
  } as const satisfies Readonly<Record<string, AdminOperation>>
}

const plans = setting('plan', 'plans')
const backends = setting('backend', 'backends')
const profiles = setting('profile', 'profiles')

/** Every operation. The admin API has a handler for each. */
export const adminOperations = {
  about: { method: 'GET', path: base, scope: 'read', summary: 'Show the token', answer: 'The token that was sent.' },
  openapi: {
    method: 'GET',
    path: `${base}/openapi.json`,
    scope: 'read',
    summary: 'Get this document',
    answer: 'The OpenAPI document of the admin API.',
  },
  state: {
    method: 'GET',
    path: `${base}/state`,
    scope: 'read',
    summary: 'Export the state',
    answer: 'The state as a file: applying it changes no value.',
    query: {
      managed: {
        ...flag,
        description:
          'Only objects that an earlier file declared, and all budgets that operators set for the declared accounts.',
      },
    },
  },
  plan: {
    method: 'POST',
    path: `${base}/plan`,
    scope: 'read',
    summary: 'Compare a file with the service',
    answer: 'The ID of the plan, its changes, and what the file does not declare.',
    body: { required: ['file'], fields: { file, prune } },
  },
  apply: {
    method: 'POST',
    path: `${base}/apply`,
    scope: 'write',
    summary: 'Make the service match a file',
    answer: 'The changes that were made, and each new key, which is shown only here.',
    body: {
      required: ['file'],
      fields: {
        file,
        prune,
        plan: { ...text, description: 'The ID of the plan that was approved. Required if anything is deleted.' },
      },
    },
  },
  listAccounts: {
    method: 'GET',
    path: `${base}/accounts`,
    scope: 'read',
    summary: 'List accounts',
    answer: 'Accounts in order of creation, and whether there are more.',
    query: {
      name: { ...text, description: 'Only the account with this name.' },
      after: { ...text, description: 'The ID of the last account on the previous page.' },
      limit: { type: 'integer', minimum: 1, maximum: 1000, description: 'Default 100.' },
    },
  },
  createAccount: {
    method: 'POST',
    path: `${base}/accounts`,
    scope: 'write',
    summary: 'Create an account',
    answer: 'The account.',
    body: { required: ['name'], fields: { name: text, plan: { ...text, description: 'Default: default_plan.' } } },
  },
  getAccount: {
    method: 'GET',
    path: `${base}/accounts/{id}`,
    scope: 'read',
    summary: 'Get an account',
    answer: 'The account.',
  },
  changeAccount: {
    method: 'PATCH',
    path: `${base}/accounts/{id}`,
    scope: 'write',
    summary: 'Change the plan, suspend, or resume',
    answer: 'The account.',
    body: { required: [], fields: { plan: text, suspended: flag } },
  },
  deleteAccount: {
    method: 'DELETE',
    path: `${base}/accounts/{id}`,
    scope: 'write',
    summary: 'Delete an account and all its data',
    answer: 'The ID of the account.',
    query: { name: { ...text, description: 'The name of the account, to confirm.' } },
  },
  listKeys: {
    method: 'GET',
    path: `${base}/accounts/{id}/keys`,
    scope: 'read',
    summary: 'List the keys of an account',
    answer: 'The records of its keys, newest first, without the secret keys.',
  },
  createKey: {
    method: 'POST',
    path: `${base}/accounts/{id}/keys`,
    scope: 'write',
    summary: 'Create a key',
    answer: 'The key, which is shown only here.',
    body: { required: ['name'], fields: { name: text, ...limits } },
  },
  getKey: {
    method: 'GET',
    path: `${base}/keys/{id}`,
    scope: 'read',
    summary: 'Get a key',
    answer: 'The record of the key, without the secret key.',
  },
  changeKey: {
    method: 'PATCH',
    path: `${base}/keys/{id}`,
    scope: 'write',
    summary: 'Change the limits of a key',
    answer: 'The record of the key. Limits that you omit do not change.',
    body: { required: [], fields: limits },
  },
  rotateKey: {
    method: 'POST',
    path: `${base}/keys/{id}/rotate`,
    scope: 'write',
    summary: 'Replace a key',
    answer: 'The new key, which is shown only here, and when the old one stops working.',
    body: { required: [], fields: { overlap: { enum: Object.keys(rotationOverlapsMs), description: 'Default 24h.' } } },
  },
  revokeKey: {
    method: 'DELETE',
    path: `${base}/keys/{id}`,
    scope: 'write',
    summary: 'Revoke a key permanently',
    answer: 'The key.',
  },
  listBudgets: {
    method: 'GET',
    path: `${base}/accounts/{id}/budgets`,
    scope: 'read',
    summary: 'List the budgets of an account',
    answer: 'Its budgets, with what is spent, held by running requests, and left.',
  },
  setBudget: {
    method: 'POST',
    path: `${base}/accounts/{id}/budgets`,
    scope: 'write',
    summary: 'Set an operator’s budget, or change its limit',
    answer: 'The budget.',
    body: {
      required: [],
      fields: {
        usd: { type: 'number', description: 'The limit in US dollars. Use either this or `tokens`.' },
        tokens: { type: 'integer', description: 'The limit in tokens of input and output.' },
        window: { enum: budgetWindows, description: 'Default month.' },
        rolling: { ...flag, description: 'Whether the window slides. Default true for 5h and week.' },
        key: { ...text, description: 'The ID of a key, for a budget for its requests only.' },
        profile: { ...text, description: 'A profile, for a budget for requests to it only.' },
      },
    },
  },
  removeBudget: {
    method: 'DELETE',
    path: `${base}/accounts/{id}/budgets`,
    scope: 'write',
    summary: 'Remove a budget',
    answer: 'The ID of the budget.',
    query: { budget: { ...text, description: 'The ID of the budget.' } },
  },
  listPlans: plans.list,
  getPlan: plans.get,
  putPlan: plans.put,
  deletePlan: plans.delete,
  listBackends: backends.list,
  getBackend: backends.get,
  putBackend: backends.put,
  deleteBackend: backends.delete,
  drainBackend: {
    method: 'POST',
    path: `${base}/backends/{id}/drain`,
    scope: 'write',
    summary: 'Stop sending new requests to a backend',
    answer: 'The backend.',
    body: holdBody(),
  },
  quarantineBackend: {
    method: 'POST',
    path: `${base}/backends/{id}/quarantine`,
    scope: 'write',
    summary: 'Take a backend that is not trusted out of service',
    answer: 'The backend.',
    body: holdBody(),
  },
  undrainBackend: {
    method: 'POST',
    path: `${base}/backends/{id}/undrain`,
    scope: 'write',
    summary: 'Send requests to a drained backend again',
    answer: 'The backend.',
  },
  releaseBackend: {
    method: 'POST',
    path: `${base}/backends/{id}/release`,
    scope: 'write',
    summary: 'End a quarantine and reset the circuit breaker',
    answer: 'The backend.',
  },
  listProfiles: profiles.list,
  getProfile: profiles.get,
  putProfile: profiles.put,
  deleteProfile: profiles.delete,
} as const satisfies Readonly<Record<string, AdminOperation>>

export type AdminOperationId = keyof typeof adminOperations
