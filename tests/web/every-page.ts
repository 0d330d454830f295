import type { Page } from 'playwright-core'
import { createSignInLink } from '../../src/accounts/identity/proofs.ts'
import { openSession } from '../../src/accounts/identity/sessions.ts'
import { clientRecipes } from '../../src/domain/client-recipes.ts'
import type { Service } from '../service.ts'
import { consoleForNobody, enterConsole, everyConsolePage, fillConsole } from './every-console-page.ts'
import { askForCode, at, nobody, openAll, somebody, type PageState } from './page-state.ts'

/** The code and the link in the last email. */
export async function lastLetter(page: Page, origin: string): Promise<{ code: string; link: string }> {
  const text = await (await page.request.get(`${origin}/dev/outbox`)).text()
  const [, code = ''] = /^\s+(\d{6})$/m.exec(text) ?? []
  const [, link = ''] = /href="([^"]+\/sign-in\/link\?token=[\w-]+)"/.exec(text) ?? []
  return { code, link }
}

/** An answer with every kind of Markdown that the playground renders. */
const markdownAnswer = [
  '## Indexes\n\nAn index is **kept up to date**:\n\n1. write the row\n   - then its `entry`\n2. done',
  '```sql\nselect a_column_with_a_long_name, another_column from a_table where id = 1\n```',
  '| Index | Cost when rows are written | A_long_name_without_any_space |\n|---|---|---|\n| B-tree | low | none |',
  '### Next\n\n> See https://example.com/a/path/that/is/long/and/has/no/place/where/a/line/could/be/broken',
].join('\n\n')

/** Sends a message in the playground. */
async function sayInPlayground(page: Page, text: string): Promise<void> {
  await page.getByLabel('Your message').fill(text)
  await page.getByRole('button', { name: 'Send' }).click()
}

/** Opens one tab of the details of an answer. */
async function lookAt(page: Page, tab: string): Promise<void> {
  await page.locator('.tabs > label', { hasText: tab }).click({ position: { x: 20, y: 5 } })
}

/** Every page of the app in every visually different state. Add new pages here. */
export const everyPage: readonly PageState[] = [
  ...consoleForNobody,
  ...everyConsolePage,
  nobody('sign-in', at('/sign-in')),
  nobody('sign-in-wrong-address', async (page, origin) => {
    await page.goto(`${origin}/sign-in`)
    await page.getByLabel('Email address').fill('nobody..at.all@example.com')
    await page.getByRole('button', { name: 'Send the code' }).click()
    await page.getByText('Enter an email address such as').waitFor()
  }),
  nobody('sign-in-signed-out', at('/sign-in?done=signed-out')),
  nobody('set-up', at('/account/setup')),
  nobody('recover', at('/account/recover')),
  nobody('code', (page, origin) => askForCode(page, origin, '/account/setup', 'code@example.com')),
  nobody('code-wrong', async (page, origin) => {
    await askForCode(page, origin, '/sign-in', 'wrong-code@example.com')
    await page.getByLabel('Code').fill('12')
    await page.getByRole('button', { name: 'Continue' }).click()
    await page.getByText('That code is not correct').waitFor()
  }),
  nobody('code-recover', (page, origin) => askForCode(page, origin, '/account/recover', 'recover@example.com')),
  nobody('link', async (page, origin) => {
    await askForCode(page, origin, '/sign-in', 'link@example.com')
    await page.goto((await lastLetter(page, origin)).link)
  }),
  nobody('link-over', at('/sign-in/link?token=none')),
  nobody('no-account', async (page, origin) => {
    await askForCode(page, origin, '/sign-in', 'unknown@example.com')
    await page.getByLabel('Code').fill((await lastLetter(page, origin)).code)
    await page.getByRole('button', { name: 'Continue' }).click()
    await page.getByText('No account has this address yet').waitFor()
  }),
  nobody('first-key', async (page, origin) => {
    await askForCode(page, origin, '/account/setup', `first-key-${Date.now()}@example.com`)
    await page.getByLabel('Code').fill((await lastLetter(page, origin)).code)
    await page.getByRole('button', { name: 'Continue' }).click()
    await page.getByText('Your first key').waitFor()
    await page.context().clearCookies()
  }),
  nobody('playground-locked', async (page, origin) => {
    await askForCode(page, origin, '/account/setup', `locked-${Date.now()}@example.com`)
    await page.getByLabel('Code').fill((await lastLetter(page, origin)).code)
    await page.getByRole('button', { name: 'Continue' }).click()
    await page.getByText('Your first key').waitFor()
    await page.goto(`${origin}/playground?profile=svc-router%2Ffusion`)
    await page.getByText('requires a premium plan').waitFor()
    await page.context().clearCookies()
  }),
  nobody('home', at('/')),
  nobody('pricing', at('/pricing')),
  nobody('models', at('/models')),
  nobody('model', at('/models/svc-router/frontier')),
  nobody('status', at('/status')),
  nobody('connect', at('/connect')),
  ...clientRecipes.map(({ name }) => nobody(`connect-${name}`, at(`/connect/${name}`))),
  nobody('docs', at('/docs')),
  nobody('docs-clients', at('/docs/clients')),
  nobody('docs-client', at('/docs/clients/codex')),
  nobody('docs-search', at('/docs/search?q=retry')),
  nobody('docs-search-none', at('/docs/search?q=nothing%20of%20this%20kind')),
  nobody('docs-benchmarks', at('/docs/benchmarks')),
  nobody('docs-api', at('/docs/api')),
  nobody('errors', at('/docs/errors')),
  nobody('error-key', at('/docs/errors/key_revoked')),
  nobody('error-overloaded', at('/docs/errors/server_is_overloaded')),
  nobody('leaked-key', at('/leaked-key')),
  nobody('support', at('/support')),
  nobody('support-secret', async (page, origin) => {
    await page.goto(`${origin}/support`)
    await page.getByLabel('What happened').fill('My key sk-made-up-0000111122223333 does not work.')
    await page.getByText('This appears to contain a provider key').waitFor()
  }),
  nobody('support-sent', async (page, origin) => {
    await page.goto(`${origin}/support`)
    await page.getByLabel('Your email address').fill('asker@example.com')
    await page.getByLabel('What happened').fill('Every request fails since noon.')
    await page.getByRole('button', { name: 'Send' }).click()
    await page.getByRole('heading', { name: 'We have your message' }).waitFor()
  }),
  nobody('not-found', at('/nothing-here')),
  nobody('outbox', at('/dev/outbox')),
  somebody('home-signed-in', at('/')),
  somebody('pricing-signed-in', at('/pricing')),
  somebody('connect-signed-in', at('/connect/codex')),
  somebody('managed-access', at('/account/managed-access')),
  somebody('managed-access-asked', async (page, origin) => {
    await page.goto(`${origin}/account/managed-access`)
    const ask = page.getByRole('button', { name: 'Request a review' })
    if ((await ask.count()) > 0) await ask.click()
    await page.getByText('waiting for review').waitFor()
  }),
  somebody('playground', at('/playground')),
  somebody('playground-answered', async (page, origin) => {
    await page.goto(`${origin}/playground`)
    await sayInPlayground(page, 'What does an index cost when rows are written?')
    await page.getByRole('table').waitFor()
  }),
  somebody('playground-markdown', async (page, origin) => {
    await page.goto(`${origin}/playground`)
    const image = { name: 'a picture with a long name.png', mimeType: 'image/png', buffer: Buffer.alloc(1000) }
    await page.getByLabel('Temperature').fill('9')
    await page.getByLabel('Image').setInputFiles(image)
    await page.getByText('Enter a number from 0 to 2').waitFor()
    await page.getByLabel('Temperature').fill('1')
    await page.getByLabel('Stream the answer').uncheck()
    await page.route('**/playground/chat', async (route) => {
      const json = { choices: [{ message: { role: 'assistant', content: markdownAnswer } }] }
      await route.fulfill({ response: await route.fetch(), json })
    })
    await sayInPlayground(page, 'What is an index?')
    await page.locator('.turn.assistant .said').waitFor()
    await page.getByLabel('Image').setInputFiles(image)
    await page.getByRole('button', { name: 'Remove the image' }).waitFor()
    await page.unroute('**/playground/chat')
  }),
  somebody('playground-code', async (page, origin) => {
    await page.goto(`${origin}/playground`)
    await page.getByRole('button', { name: 'Insert an example' }).click()
    await lookAt(page, 'Code')
  }),
  somebody('playground-error', async (page, origin) => {
    await page.goto(`${origin}/playground`)
    await page.getByLabel('Attach the fusion tool').check()
    await page.getByLabel('Tools').fill('[{"type": "function", "function": {"name": "svc_router_fusion"}}]')
    await sayInPlayground(page, 'Call it.')
    await page.getByRole('alert').getByRole('link', { name: 'About reserved_tool_name' }).waitFor()
    await page
      .getByText('The request was rejected. It does not count toward your monthly quota.')
      .waitFor({ state: 'attached' })
  }),
  somebody('playground-fusion', async (page, origin) => {
    await page.goto(`${origin}/playground?profile=svc-router%2Ffusion`)
    await sayInPlayground(page, 'Is it safe to drop an index while rows are written?')
    await page.getByRole('table').waitFor()
  }),
  somebody('account', at('/account')),
  somebody('account-notice', at('/account?done=signed-in')),
  somebody('emails', at('/account/emails')),
  somebody('emails-code', async (page, origin) => {
    await page.goto(`${origin}/account/emails`)
    await page.getByLabel('Email address').fill('third@example.com')
    await page.getByRole('button', { name: 'Send the code' }).click()
    await page.getByLabel('Code').waitFor()
  }),
  somebody('keys', at('/account/keys')),
  somebody('keys-rotate', async (page, origin) => {
    await page.goto(`${origin}/account/keys`)
    await page.locator('summary', { hasText: 'Rotate' }).first().click()
  }),
  somebody('keys-all-open', openAll('/account/keys')),
  somebody('keys-nameless', async (page, origin) => {
    await page.goto(`${origin}/account/keys`)
    await page.getByLabel('Name').fill('   ')
    await page.getByRole('button', { name: 'Create key' }).click()
    await page.getByText('A name must have 1 to 100').first().waitFor()
  }),
  somebody('keys-limited', async (page, origin) => {
    await page.goto(`${origin}/account/keys`)
    await page.locator('summary', { hasText: 'Limit this key' }).click()
    await page.getByLabel('Name').fill('from the office')
    await page.getByLabel('svc-router/fusion').uncheck()
    await page.getByLabel('Requests per minute').fill('30')
    await page.getByLabel('IP addresses').fill('203.0.113.0/24\n2001:db8::/33x')
    await page.getByRole('button', { name: 'Create key' }).click()
    await page.getByText('is not an IPv4 or IPv6 address').waitFor()
  }),
  somebody('key-limits', async (page, origin) => {
    await page.goto(`${origin}/account/keys`)
    await page
      .getByRole('link', { name: /^Limits for/ })
      .first()
      .click()
    await page.getByRole('button', { name: 'Save limits' }).waitFor()
  }),
  somebody('key-limits-wrong', async (page, origin) => {
    await page.goto(`${origin}/account/keys`)
    await page
      .getByRole('link', { name: /^Limits for/ })
      .first()
      .click()
    for (const box of await page.getByRole('checkbox').all()) await box.uncheck()
    await page.getByRole('button', { name: 'Save limits' }).click()
    await page.getByText('Select at least one profile').waitFor()
  }),
  somebody('keys-limits-saved', async (page, origin) => {
    await page.goto(`${origin}/account/keys`)
    await page
      .getByRole('link', { name: /^Limits for/ })
      .first()
      .click()
    await page.getByLabel('svc-router/fusion').uncheck()
    await page.getByLabel('Requests per minute').fill('30')
    await page.getByLabel('IP addresses').fill('203.0.113.0/24\n2001:db8::/32')
    await page.getByRole('button', { name: 'Save limits' }).click()
    await page.getByText('The limits were saved').waitFor()
  }),
  somebody('new-key', async (page, origin) => {
    await page.goto(`${origin}/account/keys`)
    await page.getByLabel('Name').fill('from the browser')
    await page.getByRole('button', { name: 'Create key' }).click()
    await page.getByText('Your new key').waitFor()
  }),
  somebody('billing', at('/billing')),
  somebody('plans', at('/billing/upgrade')),
  somebody('usage', at('/usage')),
  somebody('usage-month', async (page, origin) => {
    await page.goto(`${origin}/usage?range=month`)
    await page.locator('summary', { hasText: 'As a table' }).click()
  }),
  somebody('activity', at('/activity')),
  somebody('activity-refused', openAll('/activity')),
  somebody('activity-none', at('/activity?day=2020-01-01')),
  somebody('request', async (page, origin) => {
    await page.goto(`${origin}/activity?profile=svc-router/frontier&outcome=failed`)
    await page
      .getByRole('link', { name: /, request req_/ })
      .first()
      .click()
    await page.getByRole('heading', { name: 'Attempts' }).waitFor()
  }),
  somebody('request-cached', async (page, origin) => {
    await page.goto(`${origin}/activity?profile=svc-router/frontier&outcome=answered&session=ses_MadeUpOfATest_1_1`)
    await page
      .getByRole('link', { name: /, request req_/ })
      .first()
      .click()
    await page.getByText('from the cache').first().waitFor()
  }),
  somebody('request-fusion', async (page, origin) => {
    await page.goto(`${origin}/activity?profile=svc-router/fusion`)
    await page
      .getByRole('link', { name: /, request req_/ })
      .first()
      .click()
    await page.getByRole('heading', { name: /^Fusion/ }).waitFor()
  }),
  somebody('budgets', at('/account/budgets')),
  somebody('webhooks-all-open', openAll('/account/webhooks')),
  somebody('webhooks-wrong-url', async (page, origin) => {
    await page.goto(`${origin}/account/webhooks`)
    await page.getByLabel('URL').fill('ftp://example.com/')
    await page.getByRole('button', { name: 'Add the webhook' }).click()
    await page.getByText('Enter a URL that begins with').waitFor()
  }),
  somebody('webhook-secret', async (page, origin) => {
    await page.goto(`${origin}/account/webhooks`)
    await page.getByRole('button', { name: 'Send a test' }).last().waitFor()
    await page.getByText('Rotate the secret').last().click()
    await page.getByRole('button', { name: 'Create a new secret' }).click()
    await page.getByText('shown only once').waitFor()
  }),
  somebody('data', at('/account/data')),
  somebody('data-other-name', async (page, origin) => {
    await page.goto(`${origin}/account/data`)
    await page.getByLabel('Enter the account name').fill('somebody else')
    await page.getByRole('button', { name: 'Delete the account' }).click()
    await page.getByText('Nothing was deleted').first().waitFor()
  }),
  somebody('providers', at('/account/upstreams')),
  somebody('providers-fault', async (page, origin) => {
    await page.goto(`${origin}/account/upstreams`)
    await page.getByLabel('Provider').selectOption('custom')
    await page.getByLabel('Model').fill('my-model')
    await page.getByRole('button', { name: 'Test and connect' }).click()
    await page.getByText('needs the base URL of its API').waitFor()
  }),
  somebody('providers-tested', async (page, origin) => {
    await page.goto(`${origin}/account/upstreams`)
    await page
      .getByRole('button', { name: /^Test (?!and connect)/ })
      .first()
      .click()
    await page.getByRole('status').waitFor()
  }),
]

/** The app under a host name, because browsers store passkeys only for names. */
export function byName({ config }: Service): string {
  return config.appUrl.replace('127.0.0.1', 'localhost')
}

/** Signs the browser of a page in to the account of the service. */
export async function signIn(page: Page, service: Service, origin = service.config.appUrl): Promise<void> {
  const accountsDeps = { ...service.accountsDeps, store: service.store }
  const link = await createSignInLink(accountsDeps, service.account.id, origin)
  await page.goto(link.reveal())
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByRole('button', { name: 'Sign out' }).waitFor()
}

/** Sets the cookie of a session of the account in the browser of a page, without a navigation. */
export async function placeSession(page: Page, service: Service, accountId = service.account.id): Promise<void> {
  const accountsDeps = { ...service.accountsDeps, store: service.store }
  const { token } = await openSession(accountsDeps, accountId, { method: 'link', agent: 'Tests' })
  await page.context().addCookies([{ name: 'svc_session', value: token.reveal(), url: service.config.appUrl }])
}

/** Signs the browser of a page in as required, and creates the data that the pages display. */
export async function signInAs(as: PageState['as'], page: Page, service: Service, origin: string): Promise<void> {
  if (as === 'account') await signIn(page, service, origin)
  if (as !== 'operator') return
  await fillConsole(service)
  await enterConsole(page, service, origin)
}
