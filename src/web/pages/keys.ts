import { html } from 'hono/html'
import { AccountsError, maxNameCharacters, type AccountsErrorCode } from '../../accounts/accounts-error.ts'
import { budgetStates } from '../../accounts/budgets.ts'
import {
  createKey,
  defaultOverlap,
  effectiveState,
  findOwnKey,
  maxKeysPerAccount,
  maxListedKeys,
  revokeEveryKey,
  revokeKey,
  rotateKey,
} from '../../accounts/keys.ts'
import { noLimits } from '../../domain/key-limits.ts'
import { rotationOverlapsMs, type RotationOverlap } from '../../domain/keys.ts'
import type { Secret } from '../../runtime/secret.ts'
import type { Html } from '../components/html.ts'
import { keyList } from '../components/key-list.ts'
import { showKeyOnce } from '../components/key-once.ts'
import { csrfInput, page } from '../components/layout.ts'
import { isOfLimits, limitFields, readLimits } from '../components/limit-fields.ts'
import { newKeyForm } from '../components/new-key-form.ts'
import { withNotice } from '../components/notices.ts'
import { writeMinute } from '../components/time.ts'
import { accountsDepsFor } from '../http/control.ts'
import { redirect } from '../http/redirect.ts'
import type { PageRoute } from '../http/route.ts'
import type { AccountVisit } from '../http/visit.ts'

export const keyRoutes: readonly PageRoute[] = [
  { method: 'GET', path: '/account/keys', access: 'account', handle: (visit) => showKeys(visit) },
  { method: 'POST', path: '/account/keys', access: 'account', handle: create },
  { method: 'POST', path: '/account/keys/revoke-all', access: 'account', handle: revokeAll },
  { method: 'POST', path: '/account/keys/:keyId/rotate', access: 'account', handle: rotate },
  { method: 'POST', path: '/account/keys/:keyId/revoke', access: 'account', handle: revoke },
]

const limitsTrouble = 'The key was not created. Check its limits.'

/** Messages for the control plane errors that this page handles. */
const problems: Partial<Readonly<Record<AccountsErrorCode, string>>> = {
  name_invalid: `A name must have 1 to ${maxNameCharacters} visible characters.`,
  key_limit: `The account has reached its limit of ${maxKeysPerAccount} keys. Revoke one first.`,
  key_not_active: 'Only an active key can be rotated. Create a new one instead.',
  key_already_revoked: 'This key is already revoked.',
  profiles_invalid: limitsTrouble,
  per_minute_invalid: limitsTrouble,
  addresses_invalid: limitsTrouble,
}

interface Trouble {
  readonly sentence: string
  readonly code: AccountsErrorCode
}

async function showKeys(visit: AccountVisit, trouble?: Trouble): Promise<Response> {
  const { deps, signedIn, form } = visit
  const { id } = signedIn.account
  const isOfForm = trouble !== undefined && (trouble.code === 'name_invalid' || isOfLimits(trouble.code))
  const limitRefusal = isOfForm ? trouble.code : undefined
  const nowMs = deps.clock.nowMs()
  const [keys, uses, budgets] = await Promise.all([
    deps.control.store.listKeys(id, maxListedKeys),
    deps.lastUses(id),
    budgetStates(deps.budgets.store, id, deps.budgets.clock.nowMs()),
  ])
  const hasWorking = keys.some((key) => effectiveState(key, nowMs) !== 'revoked')
  return page(visit, {
    title: 'Keys',
    lead: 'All keys share the limits of your plan. Use a separate key for each app and machine, so that you can revoke one without affecting the others.',
    status: trouble === undefined ? 200 : 422,
    problem: trouble?.sentence,
    body: html`<section class="card">
        <h2>New key</h2>
        ${newKeyForm(signedIn, {
          name: isOfForm ? form.text('name') : '',
          problem: trouble?.code === 'name_invalid' ? trouble.sentence : undefined,
          limits: html`<details ${isOfForm && isOfLimits(trouble.code) ? 'open' : ''}>
            <summary>Limit this key…</summary>
            <div class="panel">${limitFields(visit, noLimits, limitRefusal)}</div>
          </details>`,
        })}
      </section>
      ${keyList(keys, uses, budgets, signedIn, nowMs)}
      <p class="side"><a href="/account/budgets">Budgets</a> limit what a key may spend.</p>
      ${hasWorking ? revokeAllForm(visit) : ''}
      <p class="side">Found a key that is not yours? <a href="/leaked-key">Report it</a>.</p>`,
  })
}

function revokeAllForm({ signedIn }: AccountVisit): Html {
  return html`<details>
    <summary>Revoke every key…</summary>
    <div class="panel">
      <p>
        Every app that uses a key of this account stops working within a second. This cannot be undone. After that,
        create new keys.
      </p>
      <form method="post" action="/account/keys/revoke-all">
        ${csrfInput(signedIn)}<button class="danger">Revoke every key</button>
      </form>
    </div>
  </details>`
}

async function create(visit: AccountVisit): Promise<Response> {
  return orTrouble(visit, async () => {
    const { account } = visit.signedIn
    const { key, stored } = await createKey(
      accountsDepsFor(visit),
      account.id,
      visit.form.text('name'),
      readLimits(visit),
    )
    return showNewKey(visit, key, `The key “${stored.name}” is shown only once: copy it now.`)
  })
}

async function rotate(visit: AccountVisit): Promise<Response> {
  const { form } = visit
  const { id } = await ownKey(visit)
  const overlap = form.choice('overlap', Object.keys(rotationOverlapsMs) as RotationOverlap[]) ?? defaultOverlap
  return orTrouble(visit, async () => {
    const { key, stored, endsAtMs } = await rotateKey(accountsDepsFor(visit), id, overlap)
    const old =
      overlap === 'now' ? 'The old key no longer works.' : html`The old key works until ${writeMinute(endsAtMs)}.`
    return showNewKey(visit, key, html`The new key for “${stored.name}” is shown only once: copy it now. ${old}`)
  })
}

async function revoke(visit: AccountVisit): Promise<Response> {
  const { id } = await ownKey(visit)
  return orTrouble(visit, async () => {
    await revokeKey(accountsDepsFor(visit), id)
    return redirect(withNotice('/account/keys', 'key-revoked'))
  })
}

async function revokeAll(visit: AccountVisit): Promise<Response> {
  await revokeEveryKey(accountsDepsFor(visit), visit.signedIn.account.id)
  return redirect(withNotice('/account/keys', 'keys-revoked'))
}

/** A key of another account is reported as not found, like one that does not exist. */
function ownKey({ deps, params, signedIn }: AccountVisit) {
  return findOwnKey(deps.control, signedIn.account.id, params['keyId'] ?? '')
}

async function orTrouble(visit: AccountVisit, work: () => Promise<Response>): Promise<Response> {
  try {
    return await work()
  } catch (error) {
    const sentence = error instanceof AccountsError ? problems[error.code] : undefined
    if (!(error instanceof AccountsError) || sentence === undefined) throw error
    return showKeys(visit, { sentence, code: error.code })
  }
}

function showNewKey(visit: AccountVisit, key: Secret, lead: string | Html): Promise<Response> {
  return page(visit, {
    title: 'Your new key',
    lead,
    body: html`${showKeyOnce(key, visit.deps.baseUrl)}
      <p class="actions">
        <a class="button" href="/account/keys">I have copied it</a>
        <a class="button secondary" href="/connect">Connect a client</a>
      </p>`,
  })
}
