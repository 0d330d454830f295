import { html } from 'hono/html'
import type { BackendState } from '../../domain/backend-state.ts'
import { stateOf } from '../../domain/incidents.ts'
import { isManagedOn } from '../../domain/managed-access.ts'
import type { FailedPart, ServiceHealth } from '../../domain/service-health.ts'
import type { Html } from '../components/html.ts'
import { writeAgo, writeNumber } from '../components/time.ts'
import type { WebDeps } from '../web-deps.ts'
import { backendStanding } from './backend-state-text.ts'

/** A current problem and the page where it can be fixed. */
export interface Trouble {
  readonly tone: 'bad' | 'warn'
  readonly what: string
  /** When it started or was last seen; epoch milliseconds. */
  readonly atMs?: number | undefined
  readonly path: string
  readonly link: string
}

/** Lower shares of failed requests are not reported: occasional failures are normal. */
const leastFailedShare = 0.02
/** Open files are reported from this share of the limit on. */
const filesShare = 0.8
/** Maximum number of incidents read. */
const maxIncidents = 50
/** Maximum number of account backends named; the others are counted. */
const maxNamed = 5

const parts: Readonly<Record<FailedPart['part'], Omit<Trouble, 'tone'>>> = {
  ledger_failing: { what: 'Requests cannot be recorded', path: '/status', link: 'See the status page' },
  store_failing: { what: 'The database does not respond', path: '/status', link: 'See the status page' },
  audit_failing: {
    what: 'The audit log cannot be verified or signed',
    path: '/operator/audit',
    link: 'See the audit log',
  },
  mail_failing: { what: 'Email cannot be sent', path: '/operator/tickets', link: 'See tickets' },
  billing_failing: {
    what: 'The payment provider cannot be reached',
    path: '/operator/requests',
    link: 'See upgrade requests',
  },
}

/** All current problems, most severe first. */
export async function findTroubles(web: WebDeps): Promise<readonly Trouble[]> {
  const { consoleDeps } = web
  const [health, controls, incidents, files, managed] = await Promise.all([
    consoleDeps.health(),
    consoleDeps.controls.listBackendControls(),
    consoleDeps.incidents.listIncidents(0, maxIncidents),
    consoleDeps.openFiles(),
    findManaged(web),
  ])
  const conditions = consoleDeps.backends.map(({ id }) => backendStanding(health.condition(id), controls))
  const found = [
    findFailedRequests(health),
    ...findNodes(health),
    ...conditions.map((condition) => findBackend(condition)),
    findAccountBackends(web, health),
    ...health.failures().map((failure) => findFailing(failure)),
    findAudit(web),
    ...incidents.map((incident): Trouble | undefined => {
      if (stateOf(incident) === 'resolved') return undefined
      const what = `Open incident: ${incident.title}`
      return { tone: 'warn', what, path: '/operator/incidents', link: 'Update it' }
    }),
    managed,
    findFiles(files),
  ].filter((trouble) => trouble !== undefined)
  return [...found.filter(({ tone }) => tone === 'bad'), ...found.filter(({ tone }) => tone === 'warn')]
}

/** The card that lists current problems. */
export function troublesCard(troubles: readonly Trouble[], nowMs: number): Html {
  return html`<section class="card">
    <h2>Current problems</h2>
    <ul class="rows">
      ${troubles.map(
        ({ tone, what, atMs, path, link }) =>
          html`<li>
            <div>
              <span class="tag ${tone}">${tone === 'bad' ? 'failing' : 'check'}</span> ${what}
              ${atMs === undefined ? '' : html`<span class="faint">${writeAgo(atMs, nowMs)}</span>`}
            </div>
            <a href="${path}">${link}</a>
          </li>`,
      )}
    </ul>
  </section>`
}

function findFailedRequests(health: ServiceHealth): Trouble | undefined {
  const { answered, failed } = health.requests()
  const all = answered + failed
  if (failed === 0 || failed / all < leastFailedShare) return undefined
  const share = Math.round((failed / all) * 100)
  return {
    tone: 'bad',
    what: `${writeNumber(failed)} of ${writeNumber(all)} requests failed in the last 5 minutes (${share}%)`,
    path: '/operator/backends',
    link: 'See backends',
  }
}

function findNodes(health: ServiceHealth): readonly Trouble[] {
  return health.nodes.flatMap(({ id, report, seenAtMs }): readonly Trouble[] => {
    const at = { path: '/operator/nodes', link: 'See nodes' }
    const name = report?.name ?? id
    if (health.isSilent({ seenAtMs }))
      return [{ tone: 'warn', atMs: seenAtMs, what: `The node ${name} sends no heartbeats`, ...at }]
    // A problem of the only node is the service's, and is reported as such.
    const [reason] = report?.reasons ?? []
    if (reason === undefined || report?.isDraining === true || health.nodes.length === 1) return []
    return [{ tone: 'bad', what: `The node ${name} rejects requests: ${reason}`, ...at }]
  })
}

const skipReasons: Readonly<Partial<Record<NonNullable<BackendState['reason']>, string>>> = {
  rate: 'is rate limited',
  slow: 'is slow',
}

function findBackend(condition: BackendState): Trouble | undefined {
  const { backendId, state, reason, sinceMs, lastFailure, isTroubled, skippedBy } = condition
  const path = `/operator/backends/${backendId}`
  const last = lastFailure === undefined ? '' : ` (${lastFailure.outcome.replaceAll('_', ' ')})`
  if (reason === 'credentials')
    return {
      tone: 'bad',
      atMs: sinceMs,
      what: `${backendId}: the provider rejects the credential`,
      path,
      link: 'Fix it',
    }
  if (state === 'open' || state === 'half_open')
    return {
      tone: 'bad',
      atMs: sinceMs,
      what: `${backendId} is skipped because it ${(reason && skipReasons[reason]) ?? 'fails'}${last}`,
      path,
      link: 'See why',
    }
  if (state === 'drained' || state === 'quarantined')
    return {
      tone: 'warn',
      atMs: sinceMs,
      what: `${backendId} was ${state} by an operator`,
      path,
      link: 'Put it back in service',
    }
  if (skippedBy !== undefined)
    return {
      tone: 'warn',
      what: `${backendId} is skipped by ${skippedBy.nodes} of ${skippedBy.of} nodes${last}`,
      path,
      link: 'See why',
    }
  if (isTroubled) return { tone: 'warn', what: `${backendId} often fails${last}`, path, link: 'See why' }
  return undefined
}

/** Accounts fix their own providers, but operators should know about failures when accounts ask. */
function findAccountBackends({ consoleDeps }: WebDeps, health: ServiceHealth): Trouble | undefined {
  const configured = new Set(consoleDeps.backends.map(({ id }) => id))
  const down = health.ownDown().filter((id) => !configured.has(id))
  if (down.length === 0) return undefined
  const more = down.length > maxNamed ? ` and ${writeNumber(down.length - maxNamed)} more` : ''
  return {
    tone: 'warn',
    what: `Accounts' own providers that fail: ${down.slice(0, maxNamed).join(', ')}${more}`,
    path: '/operator/accounts',
    link: 'See accounts',
  }
}

function findFailing({ part, atMs, reason }: FailedPart): Trouble {
  const { what, path, link } = parts[part]
  return { tone: 'bad', what: `${what} (${reason})`, atMs, path, link }
}

function findAudit({ consoleDeps }: WebDeps): Trouble | undefined {
  const verdict = consoleDeps.audit.last?.verdict
  if (verdict === undefined || verdict === 'failed' || verdict.state !== 'broken') return undefined
  const what = `The audit log is broken at entry ${writeNumber(verdict.at.sequence)}`
  return { tone: 'bad', what, path: '/operator/audit', link: 'See the audit log' }
}

async function findManaged({ consoleDeps, managed }: WebDeps): Promise<Trouble | undefined> {
  const providers = new Set(
    consoleDeps.backends.filter(({ serves }) => serves === 'managed').map(({ provider }) => provider),
  )
  if (providers.size === 0) return undefined
  const at = { path: '/operator/managed-access', link: 'See managed access' }
  try {
    const readiness = await managed.readiness()
    if (!readiness.switchedOn) return undefined
    const shut = [...providers].filter((provider) => !isManagedOn(readiness, provider))
    if (shut.length === 0) return undefined
    return { tone: 'bad', what: `Managed access is turned on, but not available for ${shut.join(', ')}`, ...at }
  } catch {
    return { tone: 'bad', what: 'The managed access checks cannot run: the database does not respond', ...at }
  }
}

function findFiles(files: Awaited<ReturnType<WebDeps['consoleDeps']['openFiles']>>): Trouble | undefined {
  if (files === undefined || files.open < files.limit * filesShare) return undefined
  return {
    tone: 'bad',
    what: `${writeNumber(files.open)} of ${writeNumber(files.limit)} files and connections are open. At the limit, requests are rejected. Raise the open files limit and restart`,
    path: '/status',
    link: 'See the status page',
  }
}
