/**
 * What a page says after something was done. The address carries the name of the sentence and nothing else, so that no
 * cookie is needed and nobody can have us say anything of their own.
 */
const notices = {
  'signed-in': 'You are signed in.',
  'had-account': 'This address has an account already, and you are signed in to it.',
  'email-added': 'The address is added. It can sign in from now on.',
  'email-removed': 'The address is removed.',
  'key-limit': 'You are signed in. The account has as many keys as it can: revoke one, then make a new one.',
  'key-revoked': 'The key is revoked. Every server refuses it within a second.',
  'key-limited': 'The limits are saved. Every server keeps to them within a second.',
  'keys-revoked': 'Every key is revoked. Every server refuses them within a second.',
  'provider-added': 'The provider is connected. It is tried before all others, in the order below.',
  'provider-removed': 'The provider is gone, and with it its credential.',
  'passkey-added': 'The passkey is added. It signs in from now on.',
  'passkey-removed': 'The passkey is removed.',
  'managed-asked': 'Your request is filed. The operator of this service reviews it.',
  'managed-withdrawn': 'Your request is withdrawn.',
  'signed-out': 'You are signed out.',
  'account-deleted': 'Your account is deleted, and everything about it.',
  'session-ended': 'That browser is signed out.',
  'upgrade-requested': 'Your request is with the operator. You see here what becomes of it.',
  'upgrade-withdrawn': 'Your request is withdrawn.',
  'checkout-left': 'Nothing was bought.',
  // The console's.
  'operator-in': 'You are signed in to the console.',
  'operator-added': 'The operator is added, and can sign in now.',
  'operator-changed': 'The role is changed, from this moment on.',
  'operator-removed': 'The operator is removed, and signed out everywhere.',
  'plan-changed': 'The account is on the other plan. Every server applies it within a second.',
  'account-suspended': 'The account is suspended. Every server refuses its keys within a second.',
  'account-resumed': 'The keys of the account work again, within a second.',
  'upgrade-approved': 'Approved. The account is on the plan within a second.',
  'upgrade-rejected': 'Rejected. Nothing else was changed.',
  'audit-verified': 'The log was verified. This is what was found.',
  'audit-verifying': 'The log is long: the verification goes on. Reload to see its end.',
  'operator-out': 'You are signed out of the console.',
  'backend-drained': 'It is drained: no new request goes there within a second. What runs there goes on to its end.',
  'backend-undrained': 'It takes requests again, within a second.',
  'backend-quarantined': 'It is quarantined: no new request goes there within a second.',
  'backend-released':
    'Its quarantine and circuit breaker end on every server within a second. A drain stays until you end it.',
  'managed-on': 'The switch is on. It serves while the three checks hold.',
  'managed-off': 'The switch is off. Nobody is served through managed access within a second.',
  'resale-recorded': 'The agreement is recorded.',
  'resale-revoked': 'The agreement is revoked. Its provider serves nobody through managed access within a second.',
  'managed-approved': 'The request is approved.',
  'managed-rejected': 'The request is rejected.',
  'incident-opened': 'The incident is on the status page.',
  'incident-updated': 'The update is on the status page.',
  'ticket-closed': 'The ticket is closed.',
  'ticket-reopened': 'The ticket is open again.',
  confirmed: 'Thank you. For ten minutes you are not asked again. Nothing was changed yet: do it now.',
} as const

export type Notice = keyof typeof notices

/** The sentence that the address names, if it names one. */
export function noticeOf(query: URLSearchParams): string | undefined {
  const name = query.get('done') ?? ''
  return Object.hasOwn(notices, name) ? notices[name as Notice] : undefined
}

/** A path that leads to a page which says it. */
export function withNotice(path: string, notice: Notice): string {
  return `${path}?done=${notice}`
}
