import { setImmediate as nextTurn } from 'node:timers/promises'
import { html } from 'hono/html'
import { AuditBroken } from '../../accounts/audit/audit.ts'
import type { AuditStore } from '../../accounts/ports.ts'
import { auditEvents, type AuditEntry } from '../../domain/audit.ts'
import { writeCheckpoint } from '../../domain/checkpoint.ts'
import { operatorActions } from '../../domain/operators.ts'
import { select } from '../components/field.ts'
import type { Html } from '../components/html.ts'
import { withNotice } from '../components/notices.ts'
import { paging } from '../components/paging.ts'
import { writeNumber } from '../components/time.ts'
import { download } from '../http/download.ts'
import { redirect } from '../http/redirect.ts'
import type { PageRoute } from '../http/route.ts'
import { streamTexts } from '../http/text-stream.ts'
import type { OperatorVisit } from '../http/visit.ts'
import { auditCard } from './audit-card.ts'
import { auditRows } from './audit-row.ts'
import { consolePage } from './console-page.ts'
import { operatorEmails } from './operator-emails.ts'

const path = '/operator/audit'
/** Entries per page; keeps pages below 30 KB. */
const perPage = 40
/** Maximum number of entries scanned for one page, so that a rare event does not scan the whole log. */
const among = 20_000
/** Entries scanned before yielding to the event loop. */
const atOnce = 2_500
const { see } = operatorActions

/** The audit log: reading, verifying, and exporting it. */
export const auditRoutes: readonly PageRoute[] = [
  { method: 'GET', path, access: 'operator', ...see, handle: (visit) => showLog(visit) },
  { method: 'POST', path: `${path}/verify`, access: 'operator', ...see, handle: verify },
  { method: 'POST', path: `${path}/checkpoint`, access: 'operator', ...see, handle: giveCheckpoint },
  { method: 'GET', path: `${path}/log.jsonl`, access: 'operator', ...see, handle: giveLog },
]

interface Filter {
  readonly accountId?: string
  readonly type?: string
}

function filterOf(query: URLSearchParams): Filter {
  const accountId = query.get('account')?.trim() ?? ''
  const type = query.get('event') ?? ''
  return {
    ...(/^acc_[0-9A-Za-z]{1,40}$/.test(accountId) ? { accountId } : {}),
    ...(Object.hasOwn(auditEvents, type) ? { type } : {}),
  }
}

async function showLog(visit: OperatorVisit, problem?: string): Promise<Response> {
  const { deps, query } = visit
  const { audit } = deps.consoleDeps
  const filter = filterOf(query)
  const head = await audit.store.auditHead()
  const before = Math.min(Number(/^\d{1,15}$/.exec(query.get('before') ?? '')?.[0] ?? Infinity), head.sequence + 1)
  const fromSequence = Math.max(1, before - among)
  const [found, checkpoints, emails] = await Promise.all([
    findEntries(audit.store, filter, { before, fromSequence }),
    audit.store.listCheckpoints(1),
    operatorEmails(deps),
  ])
  const shown = found.slice(0, perPage)
  const isFiltered = Object.keys(filter).length > 0
  // If the page is not full, everything down to `fromSequence` was scanned.
  const nextBefore = found.length > perPage ? shown.at(-1)!.sequence : fromSequence
  return consolePage(visit, {
    title: 'Audit log',
    lead: 'Every change to accounts, plans, keys, credentials, and the service itself, with its time and actor.',
    status: problem === undefined ? 200 : 422,
    problem,
    body: html`${auditCard(visit, head.sequence, checkpoints[0])}
      <section class="card">
        <h2>Entries</h2>
        ${filterForm(filter)} ${entryList(shown, emails, isFiltered)}
        ${logPaging(filter, query.has('before'), nextBefore > 1 ? nextBefore : undefined)}
        ${
          found.length <= perPage && fromSequence > 1
            ? html`<p class="faint">
                Searched ${writeNumber(before - fromSequence)} entries. Continue with older ones on the next page.
              </p>`
            : ''
        }
      </section>`,
  })
}

/** The newest matching entries of a range, one more than a page shows. Reads in pieces, because SQLite calls block. */
async function findEntries(
  store: Pick<AuditStore, 'listAudit'>,
  filter: Filter,
  { before, fromSequence }: { readonly before: number; readonly fromSequence: number },
): Promise<readonly AuditEntry[]> {
  const found: AuditEntry[] = []
  for (let end = before; end > fromSequence && found.length <= perPage; end -= atOnce) {
    const limit = perPage + 1 - found.length
    const range = { beforeSequence: end, fromSequence: Math.max(fromSequence, end - atOnce) }
    found.push(...(await store.listAudit({ limit, ...range, ...filter })))
    await nextTurn()
  }
  return found
}

function entryList(shown: readonly AuditEntry[], emails: ReadonlyMap<string, string>, isFiltered: boolean): Html {
  if (shown.length === 0)
    return html`<p class="empty">
      ${isFiltered ? html`No entries match. <a href="${path}">See all</a>` : 'The log is empty.'}
    </p>`
  return auditRows(shown, emails)
}

function filterForm({ accountId, type }: Filter): Html {
  const events = [['', 'All'] as const, ...Object.keys(auditEvents).map((name) => [name, name] as const)]
  return html`<form class="filters" method="get" action="${path}">
    <div class="field">
      <label for="account">Account ID</label>
      <input
        id="account"
        name="account"
        value="${accountId ?? ''}"
        maxlength="50"
        autocomplete="off"
        spellcheck="false"
      />
    </div>
    ${select('event', 'Event', events, type)}
    <button class="secondary">Show</button>
  </form>`
}

function logPaging(filter: Filter, isBehind: boolean, nextBefore: number | undefined): Html | '' {
  const query = new URLSearchParams({
    ...(filter.accountId === undefined ? {} : { account: filter.accountId }),
    ...(filter.type === undefined ? {} : { event: filter.type }),
  })
  const older = new URLSearchParams(query)
  if (nextBefore !== undefined) older.set('before', String(nextBefore))
  return paging({
    label: 'More of the log',
    start: isBehind ? `${path}?${query.toString()}` : undefined,
    next: nextBefore === undefined ? undefined : `${path}?${older.toString()}`,
  })
}

async function verify({ deps }: OperatorVisit): Promise<Response> {
  await deps.consoleDeps.audit.verify()
  const isRunning = deps.consoleDeps.audit.runningSinceMs !== undefined
  return redirect(withNotice(path, isRunning ? 'audit-verifying' : 'audit-verified'))
}

async function giveCheckpoint(visit: OperatorVisit): Promise<Response> {
  try {
    const checkpoint = await visit.deps.consoleDeps.audit.checkpoint()
    if (checkpoint === undefined) return await showLog(visit, 'The log is empty: there is nothing to sign.')
    return download(`svc-router-checkpoint-${checkpoint.sequence}.json`, `${writeCheckpoint(checkpoint)}\n`)
  } catch (error) {
    if (!(error instanceof AuditBroken)) throw error
    return showLog(visit, `The log is broken at entry ${error.at.sequence}, so it was not signed.`)
  }
}

function giveLog(visit: OperatorVisit): Response {
  return download('svc-router-audit.jsonl', streamTexts(visit, visit.deps.consoleDeps.audit.lines()))
}
