import { html } from 'hono/html'
import type { AccountsErrorCode } from '../../accounts/accounts-error.ts'
import { listSessions } from '../../accounts/identity/sessions.ts'
import { effectiveState, maxListedKeys } from '../../accounts/keys.ts'
import type { Account, StoredKey } from '../../domain/accounts.ts'
import { hasRole, operatorActions } from '../../domain/operators.ts'
import { choices } from '../components/field.ts'
import type { Html } from '../components/html.ts'
import { csrfInput } from '../components/layout.ts'
import { pageOf } from '../components/paging.ts'
import { quotaBar } from '../components/quota-bar.ts'
import { revokeForm } from '../components/revoke-form.ts'
import { writeAgo, writeCount, writeDay, writeNumber } from '../components/time.ts'
import type { OperatorVisit } from '../http/visit.ts'
import { budgetCard } from './account-budgets.ts'

/** Active keys per page. */
const keysPerPage = 20
/** Maximum number of revoked keys shown. */
const maxShownRevoked = 20

/** The console's view of an account: limits, sign-in methods, and keys, without secrets. */
export async function accountBody(
  visit: OperatorVisit,
  account: Account,
  errorCode?: AccountsErrorCode,
): Promise<Html> {
  const { deps } = visit
  const { identity } = deps
  const [usage, keys, uses, emails, passkeys, sessions, upstreams] = await Promise.all([
    deps.usageOf(account),
    deps.control.store.listKeys(account.id, maxListedKeys),
    deps.lastUses(account.id),
    identity.store.listEmails(account.id),
    identity.store.listPasskeys(account.id),
    listSessions(identity, account.id),
    deps.control.store.listUpstreams(account.id),
  ])
  const nowMs = deps.clock.nowMs()
  const plan = deps.plans.find(({ id }) => id === account.planId)
  return html`${
      account.suspended
        ? html`<p class="warning">This account is suspended, and its keys do not work. Its owner can still sign in.</p>`
        : ''
    }
    <div class="cards">
      <section class="card">
        <h2>Plan: ${plan?.name ?? account.planId}</h2>
        ${usage === undefined ? html`<p class="problem">This plan no longer exists.</p>` : quotaBar(usage, nowMs)}
        ${planForm(visit, account)}
      </section>
      <section class="card">
        <h2>Details</h2>
        <dl class="facts">
          <dt>Created</dt>
          <dd>${writeDay(account.createdAtMs)}</dd>
          <dt>Email addresses</dt>
          <dd>${emails.length === 0 ? 'none' : emails.map(({ address }) => html`${address}<br />`)}</dd>
          <dt>Passkeys</dt>
          <dd>${passkeys.length}</dd>
          <dt>Signed-in browsers</dt>
          <dd>${sessions.length}</dd>
          <dt>Own providers</dt>
          <dd>${upstreams.length === 0 ? 'none' : upstreams.map(({ provider }) => provider).join(', ')}</dd>
        </dl>
        <p><a href="/operator/accounts/${account.id}/costs">Costs and prompt caches</a></p>
        <p><a href="/operator/audit?account=${account.id}">History of changes</a></p>
        ${suspensionForm(visit, account)}
      </section>
    </div>
    ${await budgetCard(visit, account, keys, errorCode)} ${keyCard(visit, account, keys, uses)}`
}

function may({ operator }: OperatorVisit, action: keyof typeof operatorActions): boolean {
  return hasRole(operator.role, operatorActions[action].role)
}

function planForm(visit: OperatorVisit, { id, planId }: Account): Html | '' {
  if (!may(visit, 'changePlan')) return ''
  const options = visit.deps.plans.map((plan) => ({
    value: plan.id,
    label: plan.name,
    hint: `${writeCount(plan.requestsPerMonth, 'request')} per month, ${writeNumber(plan.requestsPerMinute)} per minute`,
  }))
  return html`<details>
    <summary>Change the plan</summary>
    <form class="panel" method="post" action="/operator/accounts/${id}/plan">
      ${csrfInput(visit)} ${choices('plan', 'Which plan?', options, planId)}
      <button>Change the plan</button>
    </form>
  </details>`
}

function suspensionForm(visit: OperatorVisit, { id, name, suspended }: Account): Html | '' {
  if (!may(visit, 'suspendAccount')) return ''
  if (suspended)
    return html`<form method="post" action="/operator/accounts/${id}/resume">
      ${csrfInput(visit)}<button>Resume the account</button>
    </form>`
  return html`<details>
    <summary>Suspend</summary>
    <form class="panel" method="post" action="/operator/accounts/${id}/suspend">
      ${csrfInput(visit)}
      <p>All keys of ${name} stop working within a second, until an operator resumes the account.</p>
      <button class="danger">Suspend ${name}</button>
    </form>
  </details>`
}

function keyCard(
  visit: OperatorVisit,
  account: Account,
  keys: readonly StoredKey[],
  uses: ReadonlyMap<string, number>,
): Html {
  const nowMs = visit.deps.clock.nowMs()
  const isRevoked = (key: StoredKey): boolean => effectiveState(key, nowMs) === 'revoked'
  const kept = keys.filter((key) => !isRevoked(key))
  const path = `/operator/accounts/${account.id}`
  const { shown, nav } = pageOf(kept, { path, query: visit.query, name: 'keys', perPage: keysPerPage })
  const revoked = keys.filter(isRevoked)
  return html`<section class="card">
    <h2>Keys</h2>
    ${
      kept.length === 0
        ? html`<p class="empty">It has no active keys.</p>`
        : html`<ul class="rows">
            ${shown.map((key) => keyRow(visit, account, key, uses.get(key.id)))}
          </ul>`
    }
    ${nav} ${kept.length < 2 || !may(visit, 'revokeKeys') ? '' : revokeAllForm(visit, account, kept.length)}
    ${
      revoked.length === 0
        ? ''
        : html`<details>
            <summary>
              ${writeNumber(revoked.length)}
              revoked${revoked.length > maxShownRevoked ? `, the newest ${maxShownRevoked} shown` : ''}
            </summary>
            <ul class="rows panel">
              ${revoked.slice(0, maxShownRevoked).map(
                ({ name, hint, revokedAtMs, endsAtMs, createdAtMs }) =>
                  html`<li>
                    <span>${name} <code>${hint}</code></span>
                    <span class="faint">ended ${writeDay(revokedAtMs ?? endsAtMs ?? createdAtMs)}</span>
                  </li>`,
              )}
            </ul>
          </details>`
    }
  </section>`
}

function keyRow(visit: OperatorVisit, account: Account, key: StoredKey, usedAtMs: number | undefined): Html {
  const nowMs = visit.deps.clock.nowMs()
  const state = effectiveState(key, nowMs)
  const path = `/operator/accounts/${account.id}/keys/${key.id}/revoke`
  return html`<li>
    <div>
      <strong>${key.name}</strong> <span class="tag ${state === 'active' ? 'good' : 'warn'}">${state}</span><br />
      <code>${key.hint}</code> <span class="faint">· <code>${key.id}</code></span
      ><br />
      <span class="faint"
        >created ${writeDay(key.createdAtMs)} ·
        ${usedAtMs === undefined ? 'not used recently' : html`last used ${writeAgo(usedAtMs, nowMs)}`}</span
      >
    </div>
    ${may(visit, 'revokeKeys') ? html`<div class="actions">${revokeForm(key.name, path, visit)}</div>` : ''}
  </li>`
}

function revokeAllForm(visit: OperatorVisit, { id, name }: Account, count: number): Html {
  return html`<details>
    <summary>Revoke all ${count}</summary>
    <form class="panel" method="post" action="/operator/accounts/${id}/keys/revoke-all">
      ${csrfInput(visit)}
      <p>All keys of ${name} stop working within a second. This cannot be undone. The account can create new keys.</p>
      <button class="danger">${count === 1 ? 'Revoke the key' : `Revoke all ${count} keys`}</button>
    </form>
  </details>`
}
