import { html } from 'hono/html'
import { AccountsError } from '../../accounts/accounts-error.ts'
import type { Webhook, WebhookDelivery } from '../../accounts/alerts/alert-ports.ts'
import {
  addWebhook,
  attemptedDelivery,
  maxWebhooksPerAccount,
  removeWebhook,
  rotateWebhook,
  shownDeliveries,
  testWebhook,
} from '../../accounts/alerts/webhooks.ts'
import type { Secret } from '../../runtime/secret.ts'
import { breadcrumbs } from '../components/breadcrumbs.ts'
import { field } from '../components/field.ts'
import type { Html } from '../components/html.ts'
import { csrfInput, page } from '../components/layout.ts'
import { withNotice } from '../components/notices.ts'
import { writeDay, writeMinute } from '../components/time.ts'
import { webhookDeliveries } from '../components/webhook-deliveries.ts'
import { webhookDepsFor } from '../http/control.ts'
import { redirect } from '../http/redirect.ts'
import type { PageRoute } from '../http/route.ts'
import type { AccountVisit } from '../http/visit.ts'

const path = '/account/webhooks'
/** How long the page waits for the result of a test. */
const testWaitMs = 3_000

/** Webhooks of an account: programs that get the alerts of its budgets (contract 46.16). */
export const webhookRoutes: readonly PageRoute[] = [
  { method: 'GET', path, access: 'account', handle: (visit) => showWebhooks(visit) },
  { method: 'POST', path, access: 'account', handle: add },
  { method: 'POST', path: `${path}/:webhookId/test`, access: 'account', handle: test },
  { method: 'POST', path: `${path}/:webhookId/rotate`, access: 'account', handle: rotate },
  { method: 'POST', path: `${path}/:webhookId/remove`, access: 'account', handle: remove },
]

async function showWebhooks(visit: AccountVisit, problem?: string): Promise<Response> {
  const { deps, signedIn, form } = visit
  const { id } = signedIn.account
  const { store } = deps.webhooks
  const webhooks = await store.listWebhooks(id)
  const deliveries = await Promise.all(
    webhooks.map((webhook) => store.listWebhookDeliveries(id, webhook.id, shownDeliveries)),
  )
  return page(visit, {
    title: 'Webhooks',
    above: breadcrumbs({ path: '/account/budgets', name: 'Budgets' }),
    lead: 'A webhook sends your budget alerts to your own program, whether or not you also get them by email.',
    status: problem === undefined ? 200 : 422,
    problem: problem === undefined ? undefined : 'The webhook was not added. Please correct the error below.',
    body: html`${webhooks.map((webhook, index) => webhookCard(visit, webhook, deliveries[index] ?? []))}
      <section class="card">
        <h2>Add a webhook</h2>
        ${
          webhooks.length >= maxWebhooksPerAccount
            ? html`<p>You have ${maxWebhooksPerAccount} webhooks, the maximum. Remove one to add another.</p>`
            : html`<form method="post" action="${path}">
                ${csrfInput(signedIn)}
                ${field({
                  name: 'url',
                  label: 'URL',
                  type: 'url',
                  hint: 'For each alert, we send a POST request with a JSON body to this URL.',
                  value: form.text('url'),
                  maxCharacters: 1_000,
                  problem,
                })}
                <button>Add the webhook</button>
              </form>`
        }
      </section>
      <p class="side"><a href="/docs/webhooks">What your program receives, and how to check that it is from us</a></p>`,
  })
}

function webhookCard(visit: AccountVisit, webhook: Webhook, deliveries: readonly WebhookDelivery[]): Html {
  const { signedIn, deps } = visit
  const { id, url, createdAtMs, previousUntilMs } = webhook
  const nowMs = deps.clock.nowMs()
  const of = html`<span class="unseen"> of ${url}</span>`
  return html`<section class="card" id="${id}">
    <h2>${url}</h2>
    <p class="faint">
      added
      ${writeDay(createdAtMs)}${
        previousUntilMs !== null && previousUntilMs > nowMs
          ? html` · messages are also signed with the previous secret until ${writeMinute(previousUntilMs)}`
          : ''
      }
    </p>
    ${webhookDeliveries(deliveries, nowMs)}
    <div class="actions">
      <form method="post" action="${path}/${id}/test">
        ${csrfInput(signedIn)}<button class="secondary">Send a test<span class="unseen"> to ${url}</span></button>
      </form>
      <details>
        <summary>Rotate the secret${of}</summary>
        <form class="panel" method="post" action="${path}/${id}/rotate">
          ${csrfInput(signedIn)}
          <p>
            You get a new secret. For one day, each message is signed with both secrets, so that you have time to update
            your program. If someone else knows the secret, remove the webhook and add it again instead.
          </p>
          <button>Create a new secret</button>
        </form>
      </details>
      <details>
        <summary>Remove<span class="unseen"> ${url}</span></summary>
        <form class="panel" method="post" action="${path}/${id}/remove">
          ${csrfInput(signedIn)}
          <p>We send it no more messages, and delete those that are waiting. Emails are not affected.</p>
          <button class="danger">Remove the webhook</button>
        </form>
      </details>
    </div>
  </section>`
}

async function add(visit: AccountVisit): Promise<Response> {
  const { form, signedIn } = visit
  try {
    const { secret } = await addWebhook(webhookDepsFor(visit), signedIn.account.id, form.text('url'))
    return await showSecret(visit, secret, 'Your new webhook')
  } catch (error) {
    const sentence = error instanceof AccountsError ? problemOf(visit, error) : undefined
    if (sentence === undefined) throw error
    return showWebhooks(visit, sentence)
  }
}

function problemOf({ deps }: AccountVisit, { code }: AccountsError): string | undefined {
  if (code === 'webhook_limit') return `There are already ${maxWebhooksPerAccount} webhooks. Remove one first.`
  if (code !== 'webhook_url_invalid') return undefined
  const beginning = deps.webhooks.requiresHttps ? 'https://' : 'https:// or http://'
  return `Enter a URL that begins with ${beginning}, without a user name, a password, or a fragment (#).`
}

async function rotate(visit: AccountVisit): Promise<Response> {
  const { params, signedIn } = visit
  const { secret } = await rotateWebhook(webhookDepsFor(visit), signedIn.account.id, params['webhookId'] ?? '')
  return showSecret(visit, secret, 'The new secret')
}

function showSecret(visit: AccountVisit, secret: Secret, title: string): Promise<Response> {
  return page(visit, {
    title,
    above: breadcrumbs({ path: '/account/budgets', name: 'Budgets' }, { path, name: 'Webhooks' }),
    lead: 'Each message is signed with this secret, so that your program can check that it is from us. The secret is shown only once: copy it now.',
    body: html`<section class="card">
        <h2 class="unseen">The secret</h2>
        <p class="secret">
          <code id="new-secret">${secret.reveal()}</code>
          <button type="button" data-copy="new-secret" hidden>Copy</button>
        </p>
        <p><a href="/docs/webhooks#check-the-signature">How to check the signature</a></p>
      </section>
      <p class="actions"><a class="button" href="${path}">I have copied it</a></p>`,
  })
}

async function test(visit: AccountVisit): Promise<Response> {
  const { deps, params, signedIn } = visit
  const accountId = signedIn.account.id
  const webhookId = params['webhookId'] ?? ''
  deps.limiters.webhookTests.take(accountId)
  let deliveryId: string
  try {
    deliveryId = await testWebhook(webhookDepsFor(visit), accountId, webhookId)
  } catch (error) {
    if (!(error instanceof AccountsError) || error.code !== 'webhook_busy') throw error
    return redirect(withNotice(path, 'webhook-busy'))
  }
  deps.webhooks.wake()
  const found = await attemptedDelivery(deps.webhooks, { accountId, webhookId }, deliveryId, testWaitMs)
  if (found === undefined) return redirect(withNotice(path, 'webhook-test-waiting'))
  return redirect(withNotice(path, found.state === 'delivered' ? 'webhook-tested' : 'webhook-test-failed'))
}

async function remove(visit: AccountVisit): Promise<Response> {
  const { params, signedIn } = visit
  await removeWebhook(webhookDepsFor(visit), signedIn.account.id, params['webhookId'] ?? '')
  return redirect(withNotice(path, 'webhook-removed'))
}
