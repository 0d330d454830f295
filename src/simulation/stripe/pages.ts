import type { FakeStripe } from './fake-stripe.ts'
import { isOver, type FakeCheckout, type FakePortal, type FakeSubscription } from './state.ts'

const style =
  'body{font:16px/1.5 system-ui,sans-serif;max-width:34rem;margin:3rem auto;padding:0 1rem;color:#222;background:#fff}' +
  'h1{font-size:1.4rem}.note{background:#fff3cd;border:1px solid #d9a400;padding:.5rem .75rem;border-radius:.4rem}' +
  'form{display:inline-block;margin:.3rem .4rem .3rem 0}button{font:inherit;padding:.5rem 1rem;border-radius:.4rem;' +
  'border:1px solid #666;background:#f4f4f4;color:#222;cursor:pointer}button:focus-visible{outline:3px solid #0b57d0}' +
  '@media(prefers-color-scheme:dark){body{background:#16181c;color:#eee}.note{background:#3a2f00;border-color:#a17c00}' +
  'button{background:#2a2d33;color:#eee;border-color:#888}}'

/** A button: the last segment of the path it posts to, and its label. */
type Button = readonly [action: string, words: string]

/** The checkout page. `refused` after a payment with a failing card. */
export function checkoutPage(fake: FakeStripe, checkout: FakeCheckout, refused: boolean): string {
  const price = fake.prices.find(({ id }) => id === checkout.priceId)
  const what = price === undefined ? 'an unknown price' : `${price.name} for ${money(price.minorUnits)} a month`
  const buttons: Button[] = [
    ['pay', 'Pay (simulated)'],
    ['pay-refused', 'Pay with a card that is declined'],
    ['cancel', 'Cancel'],
  ]
  const notice = refused ? '<p role="alert"><strong>The card was declined.</strong> Nothing was bought.</p>' : ''
  const rest =
    checkout.status === 'open' ? forms(`/checkout/${checkout.id}`, buttons) : `<p>This page is ${checkout.status}.</p>`
  return page('Checkout', `${notice}<p>You are about to subscribe to <strong>${escape(what)}</strong>.</p>${rest}`)
}

/** The portal page: plan, card, cancellation, and time. */
export function portalPage(fake: FakeStripe, portal: FakePortal): string {
  const customer = fake.customer(portal.customerId)
  const subscriptions = fake.subscriptionsOf(portal.customerId).filter((one) => !isOver(one))
  const card = customer?.cardFails === true ? 'The card is declined.' : 'The card works.'
  const cardButton: Button =
    customer?.cardFails === true ? ['card-works', 'Make the card work again'] : ['card-fails', 'Make the card fail']
  const at = `/portal/${portal.id}`
  const listed = subscriptions.map((one) => subscriptionPart(fake, one, at)).join('')
  return page(
    'Your subscription',
    `${listed === '' ? '<p>You have no subscription.</p>' : listed}<h2>Card</h2><p>${card}</p>${forms(at, [cardButton])}` +
      `<h2>Time</h2><p>The simulated time is ${escape(when(fake.state.nowMs))}.</p>` +
      forms(at, [
        ['week', 'Advance one week'],
        ['month', 'Advance one month'],
      ]) +
      `<p><a href="${escape(portal.returnUrl)}">Back to svc-router</a></p>`,
  )
}

function subscriptionPart(fake: FakeStripe, subscription: FakeSubscription, at: string): string {
  const { id, status, periodEndsAtMs, cancelsAtPeriodEnd, nextPriceId } = subscription
  const nameOf = (priceId: string): string => fake.prices.find((price) => price.id === priceId)?.name ?? 'unknown'
  const coming = cancelsAtPeriodEnd
    ? `It ends on ${when(periodEndsAtMs)}.`
    : nextPriceId === null
      ? `It renews on ${when(periodEndsAtMs)}.`
      : `It becomes ${nameOf(nextPriceId)} on ${when(periodEndsAtMs)}.`
  const changes = fake.prices
    .filter((price) => price.id !== subscription.priceId)
    .map(({ id: priceId, name, minorUnits }): Button => [
      `change/${id}/${priceId}`,
      `Change to ${name}, ${money(minorUnits)} a month`,
    ])
  const cancel: Button = cancelsAtPeriodEnd
    ? [`resume/${id}`, 'Keep the subscription']
    : [`cancel/${id}`, 'Cancel at the end of the period']
  return (
    `<h2>${escape(nameOf(subscription.priceId))}</h2><p>It is ${escape(status)}. ${escape(coming)}</p>` +
    forms(at, [...changes, cancel])
  )
}

function forms(at: string, buttons: readonly Button[]): string {
  return buttons
    .map(
      ([action, words]) =>
        `<form method="post" action="${escape(`${at}/${action}`)}"><button>${escape(words)}</button></form>`,
    )
    .join('')
}

function page(title: string, body: string): string {
  return (
    `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">` +
    `<title>${title} (simulated)</title><style>${style}</style></head><body><main><h1>${title} (simulated)</h1>` +
    `<p class="note">This is a simulation of Stripe on your own machine. No money moves and no card is needed.</p>` +
    `${body}</main></body></html>`
  )
}

function money(minorUnits: number): string {
  return `$${(minorUnits / 100).toFixed(2)}`
}

function when(timeMs: number): string {
  return `${new Date(timeMs).toISOString().slice(0, 16).replace('T', ' ')} UTC`
}

function escape(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;')
}
