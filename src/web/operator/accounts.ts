import { html } from 'hono/html'
import type { Account } from '../../domain/accounts.ts'
import { readEmailAddress } from '../../domain/identity.ts'
import { operatorActions } from '../../domain/operators.ts'
import { field } from '../components/field.ts'
import type { Html } from '../components/html.ts'
import { csrfInput } from '../components/layout.ts'
import { paging } from '../components/paging.ts'
import { writeDay, writeNumber } from '../components/time.ts'
import { redirect } from '../http/redirect.ts'
import type { PageRoute } from '../http/route.ts'
import type { OperatorVisit } from '../http/visit.ts'
import { consolePage } from './console-page.ts'

const path = '/operator/accounts'
/** Accounts per page. */
const perPage = 50
/** A search by name covers this many of the newest accounts; ids and addresses find any account. */
const among = 50_000
const maxSoughtCharacters = 100
const idShape = /^acc_[0-9A-Za-z]{1,40}$/

/**
 * The list of accounts and the search. The search is a POST, because the text can be an email address (contract 24.14).
 */
export const accountsRoutes: readonly PageRoute[] = [
  { method: 'GET', path, access: 'operator', ...operatorActions.see, handle: (visit) => showAccounts(visit) },
  { method: 'POST', path, access: 'operator', ...operatorActions.see, handle: findAccounts },
]

/** A search and its results. */
interface Search {
  /** The search text as entered. */
  readonly sought: string
  readonly found: readonly Account[]
}

async function showAccounts(visit: OperatorVisit, search?: Search): Promise<Response> {
  const { deps, query } = visit
  const beforeId = query.get('before') ?? ''
  const found =
    search?.found ??
    (await deps.consoleDeps.accounts.searchAccounts({
      limit: perPage + 1,
      among,
      ...(idShape.test(beforeId) ? { beforeId } : {}),
    }))
  const shown = found.slice(0, perPage)
  const last = found.length > perPage ? shown.at(-1) : undefined
  return consolePage(visit, {
    title: 'Accounts',
    body: html`<section class="card">
      <form class="filters" method="post" action="${path}">
        ${csrfInput(visit)}
        ${field({
          name: 'sought',
          label: 'ID, email address, or part of a name',
          value: search?.sought ?? '',
          maxCharacters: 254,
        })}
        <button class="secondary">Find</button>
      </form>
      ${
        shown.length === 0
          ? html`<p class="empty">${search === undefined ? 'There are no accounts.' : 'No accounts match.'}</p>`
          : html`<ul class="rows">
              ${shown.map((account) => row(account, visit))}
            </ul>`
      }
      ${search === undefined ? accountPaging(last, query.has('before')) : searchNote(last !== undefined)}
    </section>`,
  })
}

async function findAccounts(visit: OperatorVisit): Promise<Response> {
  const { deps, form } = visit
  const sought = form.text('sought')
  if (sought === '') return redirect(path)
  const one = await findOne(visit, sought)
  if (one !== undefined) return redirect(`${path}/${one}`)
  const name = sought.slice(0, maxSoughtCharacters)
  const found = await deps.consoleDeps.accounts.searchAccounts({ limit: perPage + 1, among, name })
  return showAccounts(visit, { sought, found })
}

/** The id of the account with this id or address. */
async function findOne({ deps }: OperatorVisit, sought: string): Promise<string | undefined> {
  if (idShape.test(sought)) return (await deps.control.store.findAccount(sought))?.id
  const address = readEmailAddress(sought)
  return address === undefined ? undefined : (await deps.identity.store.findEmail(address))?.accountId
}

function row({ id, name, planId, suspended, createdAtMs }: Account, { deps }: OperatorVisit): Html {
  const plan = deps.plans.find((known) => known.id === planId)
  return html`<li>
    <div>
      <a href="${path}/${id}"><strong>${name}</strong></a>
      ${suspended ? html`<span class="tag bad">suspended</span>` : ''}<br />
      <span class="faint"><code>${id}</code> · created ${writeDay(createdAtMs)}</span>
    </div>
    <span class="tag">${plan?.name ?? `${planId} (no longer exists)`}</span>
  </li>`
}

function accountPaging(last: Account | undefined, isBehind: boolean): Html | '' {
  const next = last === undefined ? undefined : `${path}?before=${last.id}`
  return paging({ label: 'More of the list', start: isBehind ? path : undefined, next })
}

function searchNote(hasMore: boolean): Html {
  return html`<p class="faint">
    ${hasMore ? `The newest ${perPage} matches. ` : ''}Search by name covers the newest ${writeNumber(among)} accounts.
    <a href="${path}">See all</a>
  </p>`
}
