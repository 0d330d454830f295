import { html } from 'hono/html'
import { AccountsError, type AccountsErrorCode } from '../../accounts/accounts-error.ts'
import {
  createAdminToken,
  defaultTokenDays,
  maxAdminTokens,
  maxListedTokens,
  maxTokenDays,
  revokeAdminToken,
  stateOf,
  type AdminTokensDeps,
} from '../../accounts/admin/admin-tokens.ts'
import { adminScopes, type AdminToken } from '../../domain/admin-tokens.ts'
import { operatorActions } from '../../domain/operators.ts'
import { breadcrumbs } from '../components/breadcrumbs.ts'
import { choices, field, type Choice } from '../components/field.ts'
import type { Html } from '../components/html.ts'
import { csrfInput } from '../components/layout.ts'
import { withNotice } from '../components/notices.ts'
import { writeDay } from '../components/time.ts'
import { operatorActor } from '../http/actor.ts'
import { redirect } from '../http/redirect.ts'
import type { PageRoute } from '../http/route.ts'
import type { OperatorVisit } from '../http/visit.ts'
import { confirmFirst } from './confirm.ts'
import { consolePage } from './console-page.ts'
import { operatorEmails } from './operator-emails.ts'

const path = '/operator/admin-tokens'
const { see, changeAdminTokens } = operatorActions

/** The tokens of the admin API; only admins change them. */
export const adminTokensRoutes: readonly PageRoute[] = [
  { method: 'GET', path, access: 'operator', ...see, handle: (visit) => showTokens(visit) },
  { method: 'POST', path, access: 'operator', ...changeAdminTokens, handle: create },
  { method: 'POST', path: `${path}/:tokenId/revoke`, access: 'operator', ...changeAdminTokens, handle: revoke },
]

const scopeChoices: readonly Choice[] = [
  { value: 'read', label: 'Read', hint: 'Can list everything and compare a file with the service.' },
  {
    value: 'write',
    label: 'Write',
    hint: 'Can also apply files and change accounts, keys, budgets, plans, backends, and profiles.',
  },
]

/** Errors that the page explains, and the field that each is about. */
const problems: Partial<Record<AccountsErrorCode, readonly [field: 'name' | 'days' | undefined, text: string]>> = {
  name_invalid: ['name', 'Enter a name of 1 to 100 visible characters.'],
  token_days_invalid: ['days', `Enter a whole number from 1 to ${maxTokenDays}.`],
  token_limit: [undefined, `There are ${maxAdminTokens} tokens, the maximum. Revoke one first.`],
}

async function showTokens(
  visit: OperatorVisit,
  problem?: readonly [field: string | undefined, text: string],
): Promise<Response> {
  const { operator, deps, form } = visit
  const nowMs = deps.clock.nowMs()
  const tokens = await deps.adminTokens.store.listAdminTokens(maxListedTokens)
  const active = tokens.filter((token) => stateOf(token, nowMs) === 'active')
  const ended = tokens.filter((token) => stateOf(token, nowMs) !== 'active')
  const emails = await operatorEmails(deps)
  const mayChange = operator.role === 'admin'
  const problemOf = (name: string): string | undefined => (problem?.[0] === name ? problem[1] : undefined)
  const whole = problem?.[0] === undefined ? problem?.[1] : 'Please correct the errors below.'
  return consolePage(visit, {
    title: 'Admin tokens',
    above: breadcrumbs({ path: '/operator/operators', name: 'Operators' }),
    lead: html`Tokens for programs that use the admin API, such as <code>svc-router apply</code> in a deployment.`,
    status: problem === undefined ? 200 : 422,
    problem: whole,
    body: html`${
        deps.admin === undefined
          ? html`<p class="notice">
              The admin API is off. To turn it on, add <code>admin_api: {enabled: true}</code> to the configuration
              file, and restart.
            </p>`
          : html`<p>
              The admin API is at <code>${deps.appUrl}/admin/v1</code>. <a href="/docs/admin">How to use it</a>
            </p>`
      }
      <section class="card">
        <h2>Active tokens</h2>
        ${active.length === 0 ? html`<p class="faint">There are none.</p>` : ''}
        <ul class="rows">
          ${active.map((token) => tokenRow(visit, token, emails, mayChange))}
        </ul>
      </section>
      ${ended.length === 0 ? '' : endedList(ended)}
      ${
        mayChange
          ? html`<section class="card">
              <h2>Create a token</h2>
              ${confirmFirst(visit, path)}
              <form method="post" action="${path}">
                ${csrfInput(visit)}
                ${field({
                  name: 'name',
                  label: 'Name',
                  hint: 'The program that uses the token, such as deployment.',
                  value: form.text('name'),
                  problem: problemOf('name'),
                })}
                ${choices('scope', 'What can it do?', scopeChoices, form.choice('scope', adminScopes) ?? 'read')}
                ${field({
                  name: 'days',
                  label: 'Days until it expires',
                  hint: `At most ${maxTokenDays}.`,
                  value: form.text('days') === '' ? String(defaultTokenDays) : form.text('days'),
                  problem: problemOf('days'),
                })}
                <button>Create token</button>
              </form>
            </section>`
          : html`<p class="faint">Only admins can create and revoke tokens.</p>`
      }`,
  })
}

function tokenRow(
  visit: OperatorVisit,
  { id, name, hint, scope, operatorId, createdAtMs, expiresAtMs, lastUsedAtMs }: AdminToken,
  emails: ReadonlyMap<string, string>,
  mayChange: boolean,
): Html {
  const by = operatorId === null ? 'the command line' : (emails.get(operatorId) ?? operatorId)
  return html`<li>
    <div>
      <strong>${name}</strong> <span class="tag">${scope}</span> <code>${hint}</code><br /><span class="faint"
        >created ${writeDay(createdAtMs)} by ${by} · expires ${writeDay(expiresAtMs)} ·
        ${lastUsedAtMs === null ? 'never used' : html`last used ${writeDay(lastUsedAtMs)}`} · <code>${id}</code></span
      >
    </div>
    ${
      mayChange
        ? html`<div class="actions">
            <details>
              <summary>Revoke<span class="unseen"> ${name}</span></summary>
              <form class="panel" method="post" action="${path}/${id}/revoke">
                ${csrfInput(visit)}
                <p>Programs that use the token “${name}” will be rejected immediately. This cannot be undone.</p>
                <button class="danger">Revoke ${name}</button>
              </form>
            </details>
          </div>`
        : ''
    }
  </li>`
}

function endedList(ended: readonly AdminToken[]): Html {
  return html`<details>
    <summary>${ended.length} expired or revoked</summary>
    <ul class="rows panel">
      ${ended.map(
        ({ id, name, revokedAtMs, expiresAtMs }) =>
          html`<li>
            <span>${name} <code>${id}</code></span>
            <span class="faint">until ${writeDay(revokedAtMs ?? expiresAtMs)}</span>
          </li>`,
      )}
    </ul>
  </details>`
}

function create(visit: OperatorVisit): Promise<Response> {
  const { form } = visit
  const scope = form.choice('scope', adminScopes)
  if (scope === undefined) return showTokens(visit, [undefined, 'Choose what the token can do.'])
  const days = /^\d{1,4}$/.test(form.text('days')) ? Number(form.text('days')) : 0
  return explaining(visit, async () => {
    const { secret, token } = await createAdminToken(depsFor(visit), { name: form.text('name'), scope, days })
    return consolePage(visit, {
      title: 'New admin token',
      lead: 'This token is shown only once. Save it now, where only the program that uses it can read it.',
      narrow: true,
      body: html`<section class="card">
          <h2 class="unseen">The token</h2>
          <p class="secret">
            <code id="new-token">${secret.reveal()}</code>
            <button type="button" data-copy="new-token" hidden>Copy</button>
          </p>
          <p class="faint">${token.name} · ${token.scope} · expires ${writeDay(token.expiresAtMs)}</p>
        </section>
        <p><a class="button" href="${path}">Admin tokens</a></p>`,
    })
  })
}

function revoke(visit: OperatorVisit): Promise<Response> {
  return explaining(visit, async () => {
    await revokeAdminToken(depsFor(visit), visit.params['tokenId'] ?? '')
    return redirect(withNotice(path, 'admin-token-revoked'))
  })
}

function depsFor(visit: OperatorVisit): AdminTokensDeps {
  return { ...visit.deps.adminTokens, actor: operatorActor(visit) }
}

/** Makes a change, or shows the page with the error. */
async function explaining(visit: OperatorVisit, change: () => Promise<Response>): Promise<Response> {
  try {
    return await change()
  } catch (error) {
    const problem = error instanceof AccountsError ? problems[error.code] : undefined
    if (problem === undefined) throw error
    return showTokens(visit, problem)
  }
}
