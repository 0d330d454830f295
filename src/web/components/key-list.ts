import { html } from 'hono/html'
import type { BudgetState } from '../../accounts/budgets.ts'
import { effectiveState } from '../../accounts/keys.ts'
import type { StoredKey } from '../../domain/accounts.ts'
import type { SignedIn } from '../http/visit.ts'
import { budgetLines } from './budget-list.ts'
import { choices } from './field.ts'
import type { Html } from './html.ts'
import { csrfInput } from './layout.ts'
import { writeLimits } from './limit-fields.ts'
import { revokeForm } from './revoke-form.ts'
import { writeAgo, writeCount, writeDay, writeMinute } from './time.ts'

/** Maximum number of revoked keys shown, latest first. */
const maxShownRevoked = 50

const overlaps = [
  { value: '24h', label: '24 more hours', hint: 'Gives you time to replace it everywhere.' },
  { value: '1h', label: '1 more hour' },
  { value: '7d', label: '7 more days' },
  { value: 'now', label: 'Revoke immediately', hint: 'If someone else may have the key.' },
]

/** An account's keys: active ones with their actions, then revoked ones. */
export function keyList(
  keys: readonly StoredKey[],
  uses: ReadonlyMap<string, number>,
  budgets: readonly BudgetState[],
  signedIn: SignedIn,
  nowMs: number,
): Html {
  const budgetsOf = ({ id }: StoredKey): readonly BudgetState[] =>
    budgets.filter(({ budget }) => budget.scope === 'key' && budget.subject === id)
  const isRevoked = (key: StoredKey): boolean => effectiveState(key, nowMs) === 'revoked'
  const kept = keys.filter((key) => !isRevoked(key))
  const revoked = keys.filter(isRevoked)
  return html`<section class="card">
      <h2>Your keys</h2>
      ${
        kept.length === 0
          ? html`<p class="empty">You have no active keys. Create one above.</p>`
          : html`<ul class="rows">
              ${kept.map((key) => keyRow(key, { usedAtMs: uses.get(key.id), budgets: budgetsOf(key) }, signedIn, nowMs))}
            </ul>`
      }
    </section>
    ${revoked.length === 0 ? '' : revokedList(revoked)}`
}

function keyRow(
  key: StoredKey,
  { usedAtMs, budgets }: { readonly usedAtMs: number | undefined; readonly budgets: readonly BudgetState[] },
  signedIn: SignedIn,
  nowMs: number,
): Html {
  const state = effectiveState(key, nowMs)
  const limits = writeLimits(key.limits)
  const path = `/account/keys/${key.id}`
  return html`<li>
    <div>
      <strong>${key.name}</strong> ${stateTag(key, state)}<br />
      <code>${key.hint}</code><br />
      <span class="faint"
        >created ${writeDay(key.createdAtMs)} ·
        ${usedAtMs === undefined ? 'not used recently' : html`last used ${writeAgo(usedAtMs, nowMs)}`}</span
      >${limits === undefined ? '' : html`<br /><span class="faint">limits: ${limits}</span>`}${budgetLines(budgets)}
    </div>
    <div class="actions">
      <a href="/usage?key=${key.id}">Usage<span class="unseen"> for ${key.name}</span></a>
      <a href="${path}/limits">Limits<span class="unseen"> for ${key.name}</span></a>
      ${state === 'active' ? rotateForm(key, signedIn) : ''} ${revokeForm(key.name, `${path}/revoke`, signedIn)}
    </div>
  </li>`
}

function stateTag(key: StoredKey, state: ReturnType<typeof effectiveState>): Html {
  if (state === 'retiring') return html`<span class="tag warn">expires ${writeMinute(key.endsAtMs ?? 0)}</span>`
  if (state === 'active') return html`<span class="tag good">active</span>`
  return html`<span class="tag bad">${state}</span>`
}

function rotateForm(key: StoredKey, signedIn: SignedIn): Html {
  return html`<details>
    <summary>Rotate<span class="unseen"> ${key.name}</span></summary>
    <form class="panel" method="post" action="/account/keys/${key.id}/rotate">
      ${csrfInput(signedIn)} ${choices('overlap', `How long should the old key “${key.name}” keep working?`, overlaps)}
      <button>Create the new key</button>
    </form>
  </details>`
}

function revokedList(revoked: readonly StoredKey[]): Html {
  return html`<details>
    <summary>
      ${writeCount(revoked.length, 'revoked key')}${revoked.length > maxShownRevoked ? `, the newest ${maxShownRevoked} shown` : ''}
    </summary>
    <ul class="rows panel">
      ${revoked.slice(0, maxShownRevoked).map(
        (key) =>
          html`<li>
            <span>${key.name} <code>${key.hint}</code></span>
            <span class="faint">ended ${writeDay(key.revokedAtMs ?? key.endsAtMs ?? key.createdAtMs)}</span>
          </li>`,
      )}
    </ul>
  </details>`
}
