import { isOneLine } from '../runtime/one-line.ts'

/** Error codes of the control plane. Callers turn them into messages. */
export type AccountsErrorCode =
  | 'name_invalid'
  | 'account_unknown'
  | 'account_name_taken'
  | 'account_limit'
  | 'account_already_suspended'
  | 'account_not_suspended'
  | 'account_name_mismatch'
  | 'plan_unknown'
  | 'key_unknown'
  | 'key_limit'
  | 'key_not_active'
  | 'key_already_revoked'
  | 'profiles_invalid'
  | 'per_minute_invalid'
  | 'addresses_invalid'
  | 'budget_invalid'
  | 'budget_limit'
  | 'budget_unknown'
  | 'webhook_url_invalid'
  | 'webhook_limit'
  | 'webhook_unknown'
  | 'webhook_busy'
  | 'upstream_unknown'
  | 'upstream_limit'
  | 'credential_invalid'
  | 'operator_only'
  | 'managed_unchanged'
  | 'note_invalid'
  | 'provider_invalid'
  | 'resale_already_recorded'
  | 'resale_unknown'
  | 'managed_request_open'
  | 'managed_request_unknown'
  | 'managed_request_decided'
  | 'plan_not_sold'
  | 'plan_same'
  | 'not_subscribed'
  | 'upgrade_unknown'
  | 'upgrade_open'
  | 'upgrade_decided'
  | 'incident_invalid'
  | 'incident_unknown'
  | 'email_invalid'
  | 'operator_unknown'
  | 'operator_exists'
  | 'operator_limit'
  | 'operator_same_role'
  | 'operator_last_admin'
  | 'operator_self'
  | 'token_unknown'
  | 'token_limit'
  | 'token_days_invalid'
  | 'setting_unknown'
  | 'backend_invalid'
  | 'backend_unchanged'
  | 'ticket_unknown'
  | 'ticket_unchanged'

/** An expected rejection by the control plane. It carries a code and never a secret. */
export class AccountsError extends Error {
  override readonly name = 'AccountsError'
  readonly code: AccountsErrorCode

  constructor(code: AccountsErrorCode) {
    super(code)
    this.code = code
  }
}

/** Maximum length of the name of an account, a key, or a plan (contract 19.15). */
export const maxNameCharacters = 100

/** Whether a trimmed text can be a name: a single visible line that is not too long (contract 19.15). */
export function isName(text: string): boolean {
  // Reserved, because a file cannot declare this name (contract 38.2), so one such key would make every export invalid.
  return text.length <= maxNameCharacters && isOneLine(text) && text !== '__proto__'
}

/** Trims a name. @throws AccountsError `name_invalid` if it cannot be one */
export function checkName(name: string): string {
  const trimmed = name.trim()
  if (!isName(trimmed)) throw new AccountsError('name_invalid')
  return trimmed
}
