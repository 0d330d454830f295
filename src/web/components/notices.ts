/**
 * Messages shown after an action. The URL carries only the name of the message, so no cookie is needed and nobody can
 * make a page show text of their own.
 */
const notices = {
  'signed-in': 'You are signed in.',
  'had-account': 'This address already has an account. You are signed in to it.',
  'email-added': 'The address was added. You can now use it to sign in.',
  'email-removed': 'The address was removed.',
  'key-limit': 'You are signed in. The account has reached its limit on keys: revoke one, then create a new one.',
  'key-revoked': 'The key was revoked. All servers reject it within a second.',
  'key-limited': 'The limits were saved. They apply on all servers within a second.',
  'budget-set': 'The budget was set. It applies on all servers within a second.',
  'budget-removed': 'The budget was removed. All servers stop applying it within a second.',
  'webhook-tested': 'The test was received.',
  'webhook-test-waiting': 'The test is in progress. Reload this page to see its result.',
  'webhook-test-failed': 'The test was not received. The reason is below.',
  'webhook-busy': 'The test was not sent, because too many messages are waiting. The list below says why they fail.',
  'webhook-removed': 'The webhook was removed. It gets no more messages.',
  'keys-revoked': 'All keys were revoked. All servers reject them within a second.',
  'provider-added':
    'The provider is connected. Requests to svc-router/frontier use your own providers before any others.',
  'provider-removed': 'The provider and its credential were deleted.',
  'passkey-added': 'The passkey was added. You can now use it to sign in.',
  'passkey-removed': 'The passkey was removed.',
  'managed-asked': 'Your request was sent. The operator of this service will review it.',
  'managed-withdrawn': 'Your request was withdrawn.',
  'signed-out': 'You are signed out.',
  'account-deleted': 'Your account and all of its data were deleted.',
  'session-ended': 'That browser was signed out.',
  'upgrade-requested': 'Your request was sent to the operator. You will see the decision here.',
  'upgrade-withdrawn': 'Your request was withdrawn.',
  'checkout-left': 'You left checkout. Nothing was purchased.',
  // Messages of the operator console.
  'operator-in': 'You are signed in to the console.',
  'operator-added': 'The operator was added and can sign in now.',
  'operator-changed': 'The role was changed. The change applies immediately.',
  'operator-removed': 'The operator was removed and signed out everywhere.',
  'plan-changed': 'The plan was changed. The change applies on all servers within a second.',
  'account-suspended': 'The account was suspended. All servers reject its keys within a second.',
  'account-resumed': 'The account was resumed. Its keys work again within a second.',
  'upgrade-approved': 'Approved. The new plan applies within a second.',
  'upgrade-rejected': 'Rejected. The account keeps its plan.',
  'audit-verified': 'The log was verified. The result is below.',
  'audit-verifying': 'The log is long, and verification is still running. Reload to see the result.',
  'operator-out': 'You are signed out of the console.',
  'backend-drained': 'The backend is drained. Within a second it gets no new requests. Requests in progress complete.',
  'backend-undrained':
    'The drain ended. Unless the backend is also quarantined, it gets requests again within a second.',
  'backend-quarantined': 'The backend is quarantined. Within a second it gets no new requests.',
  'backend-released':
    'The quarantine ended, and its circuit breaker closes on all servers within a second. If the backend was also drained, it stays drained.',
  'managed-on':
    'Managed access is turned on. It serves requests for each provider with a recorded resale agreement, while the other checks pass.',
  'managed-off': 'Managed access is turned off. It stops serving requests within a second.',
  'resale-recorded': 'The agreement was recorded.',
  'resale-revoked': 'The agreement was revoked. Managed access stops using its provider within a second.',
  'managed-approved': 'The request was approved.',
  'managed-rejected': 'The request was rejected.',
  'incident-opened': 'The incident is on the status page.',
  'incident-updated': 'The update is on the status page.',
  'admin-token-revoked': 'The token was revoked. Requests with it are rejected from now on.',
  'ticket-closed': 'The ticket is closed.',
  'ticket-reopened': 'The ticket is open again.',
  confirmed: 'Thank you. We will not ask again for ten minutes. Nothing has changed yet: repeat your action now.',
} as const

export type Notice = keyof typeof notices

/** The message named in the URL, if any. */
export function noticeOf(query: URLSearchParams): string | undefined {
  const name = query.get('done') ?? ''
  return Object.hasOwn(notices, name) ? notices[name as Notice] : undefined
}

/** The path with a query that makes the page show the notice. */
export function withNotice(path: string, notice: Notice): string {
  return `${path}?done=${notice}`
}
