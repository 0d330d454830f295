import { isOneLine } from '../domain/one-line.ts'

/** Why the control plane refuses, for whoever asked to put into a sentence. */
export type AccountsRefusal =
  | 'name_invalid'
  | 'account_unknown'
  | 'account_name_taken'
  | 'account_limit'
  | 'account_suspended_before'
  | 'account_not_suspended'
  | 'account_name_differs'
  | 'plan_unknown'
  | 'key_unknown'
  | 'key_limit'
  | 'key_not_active'
  | 'key_revoked_before'
  | 'profiles_invalid'
  | 'per_minute_invalid'
  | 'addresses_invalid'
  | 'upstream_unknown'
  | 'upstream_limit'
  | 'credential_invalid'
  | 'operator_only'
  | 'managed_stands_so'
  | 'note_invalid'
  | 'provider_invalid'
  | 'resale_recorded_before'
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
  | 'backend_invalid'
  | 'backend_stands_so'
  | 'ticket_unknown'
  | 'ticket_stands_so'

/** An expected refusal of the control plane. It carries a code and never a secret. */
export class AccountsError extends Error {
  override readonly name = 'AccountsError'
  readonly code: AccountsRefusal

  constructor(code: AccountsRefusal) {
    super(code)
    this.code = code
  }
}

/** The longest name of an account, a key or a plan. */
export const maxNameCharacters = 100

/**
 * A name without spaces around it.
 * @throws AccountsError `name_invalid` where it is too long or not one line that can be seen
 */
export function checkName(name: string): string {
  const trimmed = name.trim()
  if (trimmed.length > maxNameCharacters || !isOneLine(trimmed)) throw new AccountsError('name_invalid')
  return trimmed
}
