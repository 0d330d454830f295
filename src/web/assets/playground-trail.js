// The details of an answer: raw request and response, headers, and record.

import { showFusion } from './playground-fusion.js'
import { at, count, empty, facts, make, number, pretty, table, tag, time } from './playground-make.js'

/** @import { Answer } from './playground-answer.js' */
/** @import { ChatRequest, ChatUsage, PlaygroundAttempt, PlaygroundTrail } from '../playground-types.ts' */

/** The record is written shortly after the answer: poll at this interval, at most this many times. */
const askFirstMs = 100
const askEveryMs = 400
const tries = 15
/** Longer raw answers are truncated on the page. */
const maxShownCharacters = 200_000

/**
 * Shows a request that was just sent.
 * @param {string} url
 * @param {ChatRequest} body
 * @param {boolean} isFused
 */
export function showSent(url, body, isFused) {
  at('no-request').hidden = true
  at('sent').textContent = `POST ${url}\n\n${JSON.stringify(body, null, 2)}`
  at('no-response').hidden = false
  at('no-response').textContent = 'Waiting for the answer…'
  at('came').textContent = ''
  for (const id of ['trail', 'headers']) at(id).replaceChildren(empty('Waiting for the answer…'))
  at('fused').replaceChildren(empty(isFused ? 'The models are working…' : 'This request does not use fusion.'))
}

/**
 * Shows the response headers.
 * @param {Response} response
 */
export function showHeaders(response) {
  const lines = [...response.headers].map(([name, value]) => `${name}: ${value}`)
  const text = [`HTTP ${response.status}`, ...lines].join('\n')
  at('headers').replaceChildren(make('pre', { tabindex: '0' }, text))
}

/**
 * Shows the completed answer: response, attempts, charge, and remaining quota.
 * @param {Response | undefined} response
 * @param {Answer} answer
 * @param {{ tookMs: number, isFused: boolean, isCurrent: () => boolean }} request
 */
export async function showEnd(response, answer, { tookMs, isFused, isCurrent }) {
  const { raw } = answer
  at('no-response').hidden = raw !== ''
  at('no-response').textContent = 'No response.'
  at('came').textContent = raw.length > maxShownCharacters ? `${raw.slice(0, maxShownCharacters)}\n…` : pretty(raw)
  if (response === undefined) at('headers').replaceChildren(empty('No response.'))
  if (isFused) at('fused').replaceChildren(empty('This request did not use fusion.'))
  showFusion(answer.report, undefined)
  const head = readHead(response)
  at('trail').replaceChildren(factsOf(head, answer, undefined, tookMs))
  /** @param {(Node | string)[]} text */
  const note = (...text) => at('trail').append(empty(...text))
  const inActivity = () => make('a', { href: '/activity' }, 'Activity')
  if (response === undefined)
    return note('The request ended before an answer began. If it arrived, its result is in ', inActivity(), '.')
  if (!response.ok && response.status < 500 && head.upstream === undefined)
    return note('The request was rejected. It does not count toward your monthly quota.')
  const trail = await findTrail(head.id)
  if (!isCurrent()) return undefined
  if (trail === undefined)
    return note('No record of this request was found. If it was accepted, its record appears in ', inActivity(), '.')
  at('trail').replaceChildren(
    factsOf(head, answer, trail, tookMs),
    trail.attempts.length === 0 ? '' : attemptTable(trail.attempts),
  )
  return showFusion(answer.report, trail)
}

/** @param {Response | undefined} response */
function readHead(response) {
  /** @param {string} name */
  const read = (name) => response?.headers.get(name) ?? undefined
  /** @param {'ratelimit' | 'quota'} kind */
  const left = (kind) => {
    const [remaining, limit] = [read(`x-${kind}-remaining`), read(`x-${kind}-limit`)]
    return remaining === undefined ? undefined : `${number(Number(remaining))} of ${number(Number(limit))} left`
  }
  return {
    id: read('x-request-id'),
    isOk: response?.ok === true,
    upstream: read('x-svc-router-upstream'),
    retries: read('x-svc-router-retry-count'),
    isSimulated: read('x-svc-router-simulated') === 'true',
    minute: left('ratelimit'),
    month: left('quota'),
  }
}

/**
 * @param {ReturnType<typeof readHead>} head
 * @param {{ usage?: ChatUsage | undefined }} answer
 * @param {PlaygroundTrail | undefined} trail
 * @param {number} tookMs
 */
function factsOf({ id, isOk, upstream, retries, isSimulated, minute, month }, { usage }, trail, tookMs) {
  /** @param {string} id */
  const link = (id) => make('a', { href: `/activity/${id}` }, id)
  const tokens = usage && `${number(usage.prompt_tokens)} in, ${number(usage.completion_tokens)} out`
  return facts([
    ['Request', id && (trail === undefined ? make('code', {}, id) : link(id))],
    [isOk ? 'Answered by' : 'Rejected by', upstream && `${upstream}${isSimulated ? ' (simulated)' : ''}`],
    // An error counts only those before the last one that was asked, and a fusion none.
    ['Backends that failed first', upstream === 'fusion' ? undefined : upstream && retries],
    ['First content', trail?.firstContentMs === undefined ? undefined : `after ${time(trail.firstContentMs)}`],
    ['Total time', time(trail?.totalMs ?? tookMs)],
    ['Tokens', tokens],
    ['Counted toward the quota', trail && count(trail.charged, 'request')],
    ['This minute', minute],
    ['This month', month],
  ])
}

/** @param {readonly PlaygroundAttempt[]} attempts */
function attemptTable(attempts) {
  const rows = attempts.map(({ backend, outcome, status, ms }) => [backend, tag(outcome), status, time(ms)])
  return table('Attempts', ['Backend', 'Outcome', 'Status', 'Time'], rows)
}

/** @param {string | undefined} id @returns {Promise<PlaygroundTrail | undefined>} */
async function findTrail(id) {
  for (let left = tries; left > 0; left--) {
    await new Promise((resolve) => setTimeout(resolve, left === tries ? askFirstMs : askEveryMs))
    try {
      const response = await fetch(`/playground/trail/${id}`, { headers: { accept: 'application/json' } })
      const isJson = (response.headers.get('content-type') ?? '').startsWith('application/json')
      const trail = response.ok && isJson ? await response.json() : undefined
      if (trail?.isOver) return trail
    } catch {
      // The network may be temporarily unavailable; try again at the next poll.
    }
  }
  return undefined
}
