import { html } from 'hono/html'
import type { Html } from '../components/html.ts'
import type { AccountVisit } from '../http/visit.ts'

/** Whether the first request since the page was opened has arrived. */
interface Progress {
  readonly arrived: boolean
  /** A message that contains none of the request's content. */
  readonly text: string
}

/** Waits for a request of the account: a script polls; without JavaScript there is a link. */
export async function firstRequest(visit: AccountVisit): Promise<Html> {
  const { deps, path, query } = visit
  const since = sinceOf(query) ?? Math.floor(deps.clock.nowMs())
  const { arrived, text } = await readProgress(visit, since)
  return html`<div class="waiting ${arrived ? 'good' : ''}" data-wait="/account/first-request?since=${since}">
    <p role="status">${text}</p>
    <p class="faint" ${arrived ? 'hidden' : ''}><a href="${path}?since=${since}">Check again</a></p>
  </div>`
}

/** The newest request of the account, if it came after the page was opened. */
export async function readProgress(
  { deps, signedIn, query }: AccountVisit,
  since = sinceOf(query) ?? 0,
): Promise<Progress> {
  const latest = await deps.latestRequest(signedIn.account.id)
  if (latest === undefined || latest.admittedAtMs < since)
    return { arrived: false, text: 'Waiting for your first request…' }
  const by = latest.attempts.at(-1)?.backend
  const { profile, errorCode, state } = latest
  if (state === 'open' || state === 'delivered')
    return { arrived: false, text: `A request for ${profile} is being answered…` }
  return errorCode === undefined
    ? { arrived: true, text: `It works: ${by ?? 'a provider'} answered your request for ${profile}.` }
    : {
        arrived: false,
        text: `A request for ${profile} arrived and failed with ${errorCode}. Waiting for the next one…`,
      }
}

function sinceOf(query: URLSearchParams): number | undefined {
  const text = query.get('since') ?? ''
  return /^\d{1,15}$/.test(text) ? Number(text) : undefined
}
