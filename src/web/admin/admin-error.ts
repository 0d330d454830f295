import { AccountsError, maxNameCharacters, type AccountsErrorCode } from '../../accounts/accounts-error.ts'
import { PlanOutdated } from '../../accounts/declared/apply.ts'
import { DeclarationError, type DeclarationProblem } from '../../accounts/declared/change.ts'
import { maxNetworks } from '../../accounts/key-limits.ts'
import { maxKeysPerAccount } from '../../accounts/keys.ts'
import { maxBudgetsPerSetter } from '../../domain/budgets.ts'
import { describeBug, errorName } from '../../runtime/describe-bug.ts'
import { StoreUnavailable } from '../../runtime/store-unavailable.ts'
import { PageError } from '../http/page-error.ts'
import type { WebDeps } from '../web-deps.ts'

/** Every error of the admin API itself: its status, and one sentence with the fix (contract 38.13). */
const adminErrors = {
  token_missing: [401, 'Send "Authorization: Bearer" with a token of the admin API.'],
  token_invalid: [401, 'The token is unknown, expired, or revoked. Create one: svc-router admin-tokens create.'],
  account_key: [401, 'This is an API key for an account. The admin API needs a token: svc-router admin-tokens create.'],
  scope_missing: [403, 'The token may only read. Use one with the scope write.'],
  not_found: [404, 'There is nothing with this path or ID. See /admin/v1/openapi.json.'],
  method_not_allowed: [405, 'This path does not support that method. See /admin/v1/openapi.json.'],
  plan_outdated: [
    409,
    'The service changed after you requested this plan, so nothing was applied. Request a new plan with POST /admin/v1/plan.',
  ],
  plan_required: [
    400,
    'Applying this file deletes something. To approve that, call POST /admin/v1/plan and send the ID that it returns as "plan".',
  ],
  body_too_large: [
    413,
    'A body may have at most 1 MiB. To apply a larger file, run svc-router apply without --url on a machine of the service.',
  ],
  wrong_type: [415, 'Send JSON with "Content-Type: application/json".'],
  body_invalid: [400, 'The body is not valid for this operation. See "problems".'],
  file_invalid: [422, 'The file cannot be applied, so nothing was changed. See "problems".'],
  wrong_host: [421, 'The admin API is not available at this host name. Use the one in app_url.'],
  too_many: [429, 'Too many requests. Wait a minute, then try again.'],
  unavailable: [503, 'The database does not answer. Try again in a minute.'],
  internal_error: [500, 'This is a bug on our side. Report the request ID.'],
} as const satisfies Readonly<Record<string, readonly [status: number, message: string]>>

export type AdminErrorCode = keyof typeof adminErrors

/** An expected error of the admin API. */
export class AdminError extends Error {
  override readonly name = 'AdminError'
  readonly code: AdminErrorCode
  readonly problems: readonly DeclarationProblem[]

  constructor(code: AdminErrorCode, problems: readonly DeclarationProblem[] = []) {
    super(code)
    this.code = code
    this.problems = problems
  }
}

/** The refusals of the control plane that this API can cause, in a sentence. */
const refusals: Partial<Readonly<Record<AccountsErrorCode, readonly [status: number, message: string]>>> = {
  name_invalid: [422, `A name must have 1 to ${maxNameCharacters} visible characters.`],
  account_name_taken: [409, 'Another account has this name. Choose a different one.'],
  account_limit: [409, 'The service has the maximum number of accounts.'],
  account_name_mismatch: [422, 'Send the name of the account as "name", to confirm.'],
  account_already_suspended: [409, 'The account is already suspended.'],
  account_not_suspended: [409, 'The account is not suspended.'],
  plan_unknown: [422, 'There is no such plan. See GET /admin/v1/plans.'],
  key_limit: [409, `The account has ${maxKeysPerAccount} keys, the maximum. Revoke one first.`],
  key_not_active: [409, 'Only an active key can be rotated.'],
  key_already_revoked: [409, 'The key is already revoked.'],
  profiles_invalid: [422, 'A key can only be limited to profiles that exist.'],
  per_minute_invalid: [422, "The limit must be a whole number from 1 to the plan's requests per minute."],
  addresses_invalid: [422, `A key can have 1 to ${maxNetworks} IPv4 or IPv6 addresses or networks.`],
  budget_invalid: [
    422,
    'A budget must apply to the account, one of its keys, or an existing profile. Its limit must be 0.01 to 1,000,000 USD or 1,000 to 1,000,000,000,000 tokens.',
  ],
  budget_limit: [
    409,
    `Operators have set ${maxBudgetsPerSetter} budgets for the account, the maximum. Remove one first.`,
  ],
  budget_unknown: [404, 'The account has no such budget.'],
  backend_unchanged: [409, 'The backend is already in that state.'],
}

/** The codes of things that do not exist. */
const unknownCodes: readonly AccountsErrorCode[] = [
  'account_unknown',
  'key_unknown',
  'setting_unknown',
  'backend_invalid',
]

/** The response for anything thrown. A bug is logged, and nothing about it is shown. */
export function adminErrorResponse(deps: Pick<WebDeps, 'log'>, requestId: string, thrown: unknown): Response {
  const { status, code, message, problems } = describe(deps, requestId, thrown)
  const plain = problems.map(({ path, what, fix }) => ({ path: path.join('.'), message: what, fix }))
  const error = { code, message, request_id: requestId, ...(plain.length === 0 ? {} : { problems: plain }) }
  const headers: Record<string, string> = {}
  if (status === 401) headers['WWW-Authenticate'] = 'Bearer'
  if (status === 429 || status === 503) headers['Retry-After'] = '60'
  return Response.json({ error }, { status, headers })
}

interface Described {
  readonly status: number
  readonly code: string
  readonly message: string
  readonly problems: readonly DeclarationProblem[]
}

function describe({ log }: Pick<WebDeps, 'log'>, requestId: string, thrown: unknown): Described {
  if (thrown instanceof AccountsError) {
    const [status, message] =
      refusals[thrown.code] ?? (unknownCodes.includes(thrown.code) ? adminErrors.not_found : [500, ''])
    if (message !== '') return { status, code: thrown.code, message, problems: [] }
  }
  if (thrown instanceof StoreUnavailable) log({ event: 'store_failing', reason: errorName(thrown) })
  const code = codeOf(thrown)
  if (code === 'internal_error') log({ event: 'internal_error', requestId, ...describeBug(thrown) })
  const [status, message] = adminErrors[code]
  const found = thrown instanceof AdminError || thrown instanceof DeclarationError ? thrown.problems : []
  return { status, code, message, problems: found }
}

function codeOf(thrown: unknown): AdminErrorCode {
  if (thrown instanceof AdminError) return thrown.code
  if (thrown instanceof DeclarationError) return 'file_invalid'
  if (thrown instanceof PlanOutdated) return 'plan_outdated'
  if (thrown instanceof StoreUnavailable) return 'unavailable'
  if (thrown instanceof PageError && thrown.code === 'too_large') return 'body_too_large'
  if (thrown instanceof PageError && thrown.code === 'too_many') return 'too_many'
  return 'internal_error'
}
