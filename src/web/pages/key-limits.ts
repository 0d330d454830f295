import { html } from 'hono/html'
import { effectiveState, findOwnKey, limitKey } from '../../accounts/keys.ts'
import { AccountsError, type AccountsRefusal } from '../../accounts/refusals.ts'
import type { StoredKey } from '../../domain/accounts.ts'
import { controlOf } from '../control.ts'
import { csrfInput, page } from '../layout.ts'
import { isOfLimits, limitFields, readLimits } from '../limit-fields.ts'
import { withNotice } from '../notices.ts'
import { redirect } from '../redirect.ts'
import type { Route } from '../route.ts'
import type { AccountVisit } from '../visit.ts'
import { trail } from '../trail.ts'

export const keyLimitRoutes: readonly Route[] = [
  { method: 'GET', path: '/account/keys/:keyId/limits', access: 'account', handle: show },
  { method: 'POST', path: '/account/keys/:keyId/limits', access: 'account', handle: limit },
]

async function show(visit: AccountVisit): Promise<Response> {
  return showLimits(visit, await workingKey(visit))
}

async function showLimits(visit: AccountVisit, key: StoredKey, refusal?: AccountsRefusal): Promise<Response> {
  return page(visit, {
    title: `Limits for ${key.name}`,
    above: trail({ path: '/account/keys', name: 'Keys' }),
    lead: html`Changes to the limits of <code>${key.hint}</code> apply within a second. If you rotate the key, the new
      key has the same limits.`,
    status: refusal === undefined ? 200 : 422,
    problem: refusal === undefined ? undefined : 'The limits were not changed. Please correct the error below.',
    body: html`<form method="post" action="/account/keys/${key.id}/limits">
      ${csrfInput(visit.signedIn)} ${limitFields(visit, key.limits, refusal)}
      <p class="actions"><button>Save limits</button> <a href="/account/keys">Cancel</a></p>
    </form>`,
  })
}

async function limit(visit: AccountVisit): Promise<Response> {
  const key = await workingKey(visit)
  try {
    await limitKey(controlOf(visit), key.id, readLimits(visit))
  } catch (error) {
    if (error instanceof AccountsError && isOfLimits(error.code)) return showLimits(visit, key, error.code)
    throw error
  }
  return redirect(withNotice('/account/keys', 'key-limited'))
}

/** A key of this account that is not revoked; any other is reported as not found. */
async function workingKey({ parts, params, signedIn }: AccountVisit): Promise<StoredKey> {
  const key = await findOwnKey(parts.control, signedIn.account.id, params['keyId'] ?? '')
  if (effectiveState(key, parts.clock.nowMs()) === 'revoked') throw new AccountsError('key_unknown')
  return key
}
