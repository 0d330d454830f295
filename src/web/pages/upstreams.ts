import { html } from 'hono/html'
import { AccountsError, type AccountsErrorCode } from '../../accounts/accounts-error.ts'
import { maxUpstreamsPerAccount, removeUpstream } from '../../accounts/upstreams.ts'
import type { Upstream } from '../../domain/accounts.ts'
import type { UpstreamTest } from '../../domain/upstream.ts'
import { Secret } from '../../runtime/secret.ts'
import { connectForm } from '../components/connect-form.ts'
import type { Html } from '../components/html.ts'
import { csrfInput, page } from '../components/layout.ts'
import { withNotice } from '../components/notices.ts'
import { upstreamTestResult } from '../components/upstream-test-result.ts'
import { accountsDepsFor } from '../http/control.ts'
import { PageError } from '../http/page-error.ts'
import { redirect } from '../http/redirect.ts'
import type { PageRoute } from '../http/route.ts'
import type { UpstreamFault } from '../http/upstream-connector.ts'
import type { AccountVisit } from '../http/visit.ts'

export const upstreamRoutes: readonly PageRoute[] = [
  { method: 'GET', path: '/account/upstreams', access: 'account', handle: (visit) => showUpstreams(visit) },
  { method: 'POST', path: '/account/upstreams', access: 'account', handle: connect },
  { method: 'POST', path: '/account/upstreams/:upstreamId/test', access: 'account', handle: test },
  { method: 'POST', path: '/account/upstreams/:upstreamId/remove', access: 'account', handle: remove },
]

const problems: Partial<Readonly<Record<AccountsErrorCode, UpstreamFault>>> = {
  upstream_limit: {
    field: 'provider',
    sentence: `The account has reached its limit of ${maxUpstreamsPerAccount} providers. Remove one first.`,
  },
  credential_invalid: {
    field: 'credential',
    sentence: 'The credential is too long or contains invalid characters. Enter it on one line, without quotes.',
  },
}

interface Shown {
  readonly fault?: UpstreamFault
  /** The failed test of a new provider; nothing was saved. */
  readonly failed?: UpstreamTest
  readonly tested?: { readonly id: string; readonly result: UpstreamTest }
}

async function showUpstreams(visit: AccountVisit, { fault, failed, tested }: Shown = {}): Promise<Response> {
  const { deps, signedIn } = visit
  const upstreams = await deps.control.store.listUpstreams(signedIn.account.id)
  return page(visit, {
    title: 'Providers',
    lead: 'Your own credentials for model providers. They are encrypted before they are stored, used only for this account, and never shown again.',
    status: fault === undefined && failed === undefined ? 200 : 422,
    problem: problemOf(fault, failed),
    body: html`<section class="card">
        <h2>Connected</h2>
        ${
          upstreams.length === 0
            ? html`<p class="empty">
                None yet. Requests to <code>svc-router/frontier</code> use the providers that you connect before any
                others.
              </p>`
            : html`<ul class="rows">
                ${upstreams.map((upstream) => row(visit, upstream, tested?.id === upstream.id ? tested.result : undefined))}
              </ul>`
        }
      </section>
      <section class="card">
        <h2>Connect a provider</h2>
        ${
          failed === undefined
            ? ''
            : html`${upstreamTestResult(failed)}
                <p>Enter the credential again. Then correct the settings, or save the provider without a test.</p>`
        }
        ${connectForm(visit, fault, failed)}
      </section>
      <p class="side">
        No credential of your own? <a href="/account/managed-access">Request managed access</a> to use the operator’s
        providers. A person reviews each request.
      </p>`,
  })
}

function problemOf(fault: UpstreamFault | undefined, failed: UpstreamTest | undefined): string | undefined {
  if (failed !== undefined) return 'The provider was not connected because the test request failed.'
  return fault === undefined ? undefined : 'The provider was not connected. Please correct the errors below.'
}

function row({ deps, signedIn }: AccountVisit, upstream: Upstream, result: UpstreamTest | undefined): Html {
  const name = deps.upstreams.providers.find(({ id }) => id === upstream.provider)?.name ?? upstream.provider
  const what = `${name} ${upstream.model}`
  return html`<li>
    <div>
      <strong>${name}</strong> <code>${upstream.model}</code><br />
      <span class="faint"
        >${maskedCredential(upstream)}${upstream.baseUrl === null ? '' : html` · ${upstream.baseUrl}`}</span
      >
      ${result === undefined ? '' : upstreamTestResult(result)}
    </div>
    <div class="actions">
      <form method="post" action="/account/upstreams/${upstream.id}/test">
        ${csrfInput(signedIn)}<button class="secondary">Test<span class="unseen"> ${what}</span></button>
      </form>
      <details>
        <summary>Remove<span class="unseen"> ${what}</span></summary>
        <form class="panel" method="post" action="/account/upstreams/${upstream.id}/remove">
          ${csrfInput(signedIn)}
          <p>This deletes its credential. If you have no other provider, requests may fail.</p>
          <button class="danger">Remove ${what}</button>
        </form>
      </details>
    </div>
  </li>`
}

function maskedCredential({ sealedCredential, credentialHint }: Upstream): string {
  if (sealedCredential === null) return 'no credential'
  return credentialHint === null ? 'credential ••••' : `credential ••••${credentialHint}`
}

async function connect(visit: AccountVisit): Promise<Response> {
  const { deps, form, signedIn, address } = visit
  const credential = form.text('credential')
  const given = {
    provider: form.text('provider'),
    model: form.text('model'),
    base_url: form.text('base_url'),
    region: form.text('region'),
    format: form.text('format'),
    auth_header: form.text('auth_header'),
    headers: form.text('headers'),
    timeouts: Object.fromEntries(deps.upstreams.timeouts.map(({ name }) => [name, form.text(`timeout_${name}`)])),
    credential: credential === '' ? undefined : new Secret(credential),
    isUntested: form.isTicked('untested'),
  }
  if (!given.isUntested) deps.limiters.tries.take(address)
  try {
    const connected = await deps.upstreams.connect(accountsDepsFor(visit), signedIn.account.id, given)
    if ('field' in connected) return await showUpstreams(visit, { fault: connected })
    if ('failed' in connected) return await showUpstreams(visit, connected)
    return redirect(withNotice('/account/upstreams', 'provider-added'))
  } catch (error) {
    const fault = error instanceof AccountsError ? problems[error.code] : undefined
    if (fault === undefined) throw error
    return showUpstreams(visit, { fault })
  }
}

async function test(visit: AccountVisit): Promise<Response> {
  const { deps, params, signedIn, address } = visit
  const upstreams = await deps.control.store.listUpstreams(signedIn.account.id)
  const upstream = upstreams.find(({ id }) => id === params['upstreamId'])
  if (upstream === undefined) throw new PageError('not_found')
  deps.limiters.tries.take(address)
  const result = await deps.upstreams.test(upstream)
  return showUpstreams(visit, { tested: { id: upstream.id, result } })
}

async function remove(visit: AccountVisit): Promise<Response> {
  await removeUpstream(accountsDepsFor(visit), visit.signedIn.account.id, visit.params['upstreamId'] ?? '')
  return redirect(withNotice('/account/upstreams', 'provider-removed'))
}
