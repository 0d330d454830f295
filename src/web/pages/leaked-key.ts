import { html } from 'hono/html'
import { revokeLeakedKeys, type LeakOutcome } from '../../accounts/leaked-keys/leaked-keys.ts'
import { keyPrefix } from '../../domain/keys.ts'
import { lines } from '../components/field.ts'
import { csrfInput, page } from '../components/layout.ts'
import type { PageRoute } from '../http/route.ts'
import type { Visit, WebhookVisit } from '../http/visit.ts'

export const leakedKeyRoutes: readonly PageRoute[] = [
  { method: 'GET', path: '/leaked-key', access: 'public', handle: (visit) => show(visit) },
  { method: 'POST', path: '/leaked-key', access: 'public', handle: revoke },
  { method: 'POST', path: '/leaked-keys/github', access: 'webhook', handle: takeReport },
]

async function revoke(visit: Visit): Promise<Response> {
  const { deps, form, address } = visit
  deps.limiters.tries.take(address)
  const outcomes = await revokeLeakedKeys(deps.leaks, [{ text: form.text('key') }])
  // With several keys, report the most important outcome.
  const outcome = states.find((state) => outcomes.some((each) => each.state === state))
  if (outcome === undefined)
    return show(visit, `That does not contain one of our keys. They start with ${keyPrefix} and have 45 characters.`)
  return page(visit, {
    title: outcome === 'unknown' ? 'This key is not in use' : 'The key is revoked',
    lead: sentences[outcome],
    narrow: true,
    body: html`<p><a class="button secondary" href="/">Home page</a></p>`,
  })
}

/** Webhook for GitHub secret scanning alerts; docs/operators.md describes how to register it. */
async function takeReport({ deps, body, headers }: WebhookVisit): Promise<Response> {
  const answer = await deps.handleScanningReport(body, headers)
  if (answer.status === 200) return Response.json(answer.labels)
  const { status, outcome } = answer
  const wait = answer.status === 503 ? { 'Retry-After': String(Math.ceil(answer.retryAfterMs / 1000)) } : {}
  return Response.json({ outcome }, { status, headers: wait })
}

/** Most important first. */
const states = ['revoked', 'revoked_before', 'unknown'] as const satisfies readonly LeakOutcome['state'][]

const sentences: Readonly<Record<LeakOutcome['state'], string>> = {
  revoked: 'All servers reject it permanently, within a second. We email its owner if we can. Thank you.',
  revoked_before: 'It was already revoked. Thank you for telling us.',
  unknown: 'It has the format of our keys, but it does not belong to any account. There is nothing to revoke.',
}

function show(visit: Visit, problem?: string): Promise<Response> {
  return page(visit, {
    title: 'I found a key',
    lead: `Found a key that starts with ${keyPrefix} in a public place? Paste it, or the text around it. We revoke the key immediately and email its owner if we can.`,
    status: problem === undefined ? 200 : 422,
    problem,
    narrow: true,
    body: html`<form method="post" action="/leaked-key">
        ${csrfInput(visit.signedIn)} ${lines({ name: 'key', label: 'The key', rows: 3, maxCharacters: 4000 })}
        <button class="danger">Revoke this key</button>
      </form>
      <p class="side">
        Is it your own? <a href="/account/keys">Rotate it</a> instead, so that apps using it keep working. Revoking
        cannot be undone.
      </p>`,
  })
}
