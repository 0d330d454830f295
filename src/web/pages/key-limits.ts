import { html } from 'hono/html'
import { AccountsError, type AccountsErrorCode } from '../../accounts/accounts-error.ts'
import { effectiveState, findOwnKey, limitKey } from '../../accounts/keys.ts'
import type { StoredKey } from '../../domain/accounts.ts'
import { breadcrumbs } from '../components/breadcrumbs.ts'
import { csrfInput, page } from '../components/layout.ts'
import { isOfLimits, limitFields, readLimits } from '../components/limit-fields.ts'
import { withNotice } from '../components/notices.ts'
import { accountsDepsFor } from '../http/control.ts'
import { redirect } from '../http/redirect.ts'
import type { PageRoute } from '../http/route.ts'
import type { AccountVisit } from '../http/visit.ts'

export const keyLimitRoutes: readonly PageRoute[] = [
  { method: 'GET', path: '/account/keys/:keyId/limits', access: 'account', handle: show },
  { method: 'POST', path: '/account/keys/:keyId/limits', access: 'account', handle: limit },
]

async function show(visit: AccountVisit): Promise<Response> {
  return showLimits(visit, await workingKey(visit))
}

async function showLimits(visit: AccountVisit, key: StoredKey, errorCode?: AccountsErrorCode): Promise<Response> {
  return page(visit, {
    title: `Limits for ${key.name}`,
    above: breadcrumbs({ path: '/account/keys', name: 'Keys' }),
    lead: html`Changes to the limits of <code>${key.hint}</code> apply within a second. If you rotate the key, the new
      key has the same limits.`,
    status: errorCode === undefined ? 200 : 422,
    problem: errorCode === undefined ? undefined : 'The limits were not changed. Please correct the error below.',
    body: html`<form method="post" action="/account/keys/${key.id}/limits">
      ${csrfInput(visit.signedIn)} ${limitFields(visit, key.limits, errorCode)}
      <p class="actions"><button>Save limits</button> <a href="/account/keys">Cancel</a></p>
    </form>`,
  })
}

async function limit(visit: AccountVisit): Promise<Response> {
  const key = await workingKey(visit)
  try {
    await limitKey(accountsDepsFor(visit), key.id, readLimits(visit))
  } catch (error) {
    if (error instanceof AccountsError && isOfLimits(error.code)) return showLimits(visit, key, error.code)
    throw error
  }
  return redirect(withNotice('/account/keys', 'key-limited'))
}

/** A key of this account that is not revoked; any other is reported as not found. */
async function workingKey({ deps, params, signedIn }: AccountVisit): Promise<StoredKey> {
  const key = await findOwnKey(deps.control, signedIn.account.id, params['keyId'] ?? '')
  if (effectiveState(key, deps.clock.nowMs()) === 'revoked') throw new AccountsError('key_unknown')
  return key
}
