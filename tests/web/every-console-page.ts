import type { Page } from 'playwright-core'
import { createAdminToken, revokeAdminToken } from '../../src/accounts/admin/admin-tokens.ts'
import { controlBackend } from '../../src/accounts/backends/backend-controls.ts'
import { requestUpgrade } from '../../src/accounts/billing/upgrade-requests.ts'
import { createOperatorLink } from '../../src/accounts/identity/proofs.ts'
import {
  recordResale,
  requestManagedAccess,
  reviewManagedRequest,
} from '../../src/accounts/managed-access/managed-access.ts'
import { createOperator } from '../../src/accounts/operators/operators.ts'
import { openIncident, updateIncident } from '../../src/accounts/status/incidents.ts'
import { fileTicket } from '../../src/accounts/support/support.ts'
import { markTicket } from '../../src/accounts/support/tickets.ts'
import type { OperatorRole } from '../../src/domain/operators.ts'
import type { Service } from '../service.ts'
import { operatorsDeps, upgradesDeps } from './operator.ts'
import { askForCode, at, nobody, openAll, openSummaries, operator, type PageState } from './page-state.ts'

const dryRun = (query: string): PageState['show'] => at(`/operator/dry-run?format=openai-chat&${query}`)

async function toAccount(page: Page, origin: string, name: string): Promise<void> {
  await page.goto(`${origin}/operator/accounts`)
  await page.getByRole('link', { name, exact: true }).click()
  await page.getByRole('heading', { name: 'Keys' }).waitFor()
}

async function askToConfirm(page: Page, origin: string): Promise<void> {
  await page.goto(`${origin}/operator/confirm`)
  await page.getByRole('button', { name: 'Send the code' }).click()
  await page.getByLabel('Code').waitFor()
}

/** The console before the first operator exists. */
export const consoleForNobody: readonly PageState[] = [nobody('operator-first', at('/operator/sign-in'))]

/** Every page of the console in every visually different state. The last ones are for visitors. */
export const everyConsolePage: readonly PageState[] = [
  operator('overview', at('/operator')),
  operator('overview-notice', at('/operator?done=operator-in')),
  operator('traffic', at('/operator/traffic')),
  operator('nodes', at('/operator/nodes')),
  operator('costs', at('/operator/costs')),
  operator('accounts', at('/operator/accounts')),
  operator('accounts-none', async (page, origin) => {
    await page.goto(`${origin}/operator/accounts`)
    await page.getByLabel('ID, email address').fill('nobody is called so')
    await page.getByRole('button', { name: 'Find' }).click()
    await page.getByText('No accounts match').waitFor()
  }),
  operator('account', (page, origin) => toAccount(page, origin, 'tester')),
  operator('account-open', async (page, origin) => {
    await toAccount(page, origin, 'tester')
    await openSummaries(page)
  }),
  operator('account-costs', async (page, origin) => {
    await toAccount(page, origin, 'tester')
    await page.getByRole('link', { name: 'Costs and prompt caches' }).click()
    await page.getByRole('heading', { name: 'Cost by model' }).waitFor()
  }),
  operator('account-costs-none', async (page, origin) => {
    await toAccount(page, origin, 'suspended & gone')
    await page.getByRole('link', { name: 'Costs and prompt caches' }).click()
    await page.getByText('sent no requests').waitFor()
  }),
  operator('account-suspended', (page, origin) => toAccount(page, origin, 'suspended & gone')),
  operator('requests', at('/operator/requests')),
  operator('requests-decided', async (page, origin) => {
    await page.goto(`${origin}/operator/requests`)
    await page.getByRole('button', { name: 'Approve for hopeful' }).click()
    await page.getByText('Recently decided').waitFor()
  }),
  operator('operators', at('/operator/operators')),
  operator('operators-open', openAll('/operator/operators')),
  operator('operators-wrong', async (page, origin) => {
    await page.goto(`${origin}/operator/operators`)
    await page.getByLabel('Email address').fill('ada@example.com')
    await page.getByRole('button', { name: 'Add operator' }).click()
    await page.getByText('already belongs to an operator').waitFor()
  }),
  operator('admin-tokens', at('/operator/admin-tokens')),
  operator('admin-tokens-open', openAll('/operator/admin-tokens')),
  operator('admin-tokens-wrong', async (page, origin) => {
    await page.goto(`${origin}/operator/admin-tokens`)
    await page.getByLabel('Name').fill('nightly')
    await page.getByLabel('Days until it expires').fill('1000')
    await page.getByRole('button', { name: 'Create token' }).click()
    await page.getByText('Enter a whole number').waitFor()
  }),
  operator('admin-token-new', async (page, origin) => {
    await page.goto(`${origin}/operator/admin-tokens`)
    await page.getByLabel('Name').fill('nightly')
    await page.getByRole('button', { name: 'Create token' }).click()
    await page.getByText('shown only once').waitFor()
  }),
  operator('audit', at('/operator/audit')),
  operator('audit-verified', async (page, origin) => {
    await page.goto(`${origin}/operator/audit`)
    await page.getByRole('button', { name: 'Verify now' }).click()
    await page.getByText('The log was verified').waitFor()
  }),
  operator('audit-none', at('/operator/audit?account=acc_nothing')),
  operator('backends', at('/operator/backends')),
  operator('backend', at('/operator/backends/alpha')),
  operator('backend-open', openAll('/operator/backends/beta')),
  operator('backend-drained', at('/operator/backends/gamma?done=backend-drained')),
  operator('backend-again', async (page, origin) => {
    await page.goto(`${origin}/operator/backends/beta`)
    await page.locator('summary', { hasText: 'Quarantine' }).click()
    await page.getByRole('button', { name: 'Quarantine it' }).click()
    await page.getByText('The backend is quarantined').waitFor()
    await page.getByRole('button', { name: 'Release' }).click()
    await page.getByText('The quarantine ended').waitFor()
  }),
  operator('profiles', at('/operator/profiles')),
  operator('dry-run', at('/operator/dry-run?profile=svc-router/frontier')),
  operator('dry-run-answer', dryRun('profile=svc-router/frontier&tokens=90000&plan=max&images=on')),
  operator('dry-run-own', dryRun('profile=svc-router/frontier&tokens=500&account=tester')),
  operator('dry-run-fusion', dryRun('profile=svc-router/fusion&tokens=500&plan=max')),
  operator('dry-run-refused', dryRun('profile=svc-router/fusion&tokens=500&plan=free')),
  operator('dry-run-wrong', dryRun('profile=svc-router/frontier&tokens=many')),
  operator('managed-access', at('/operator/managed-access')),
  operator('managed-access-on', async (page, origin) => {
    await page.goto(`${origin}/operator/managed-access`)
    await page.getByRole('button', { name: 'Turn on' }).click()
    await page.getByRole('button', { name: 'Turn off' }).waitFor()
    await openSummaries(page)
  }),
  operator('incidents', at('/operator/incidents')),
  operator('incidents-open', openAll('/operator/incidents')),
  operator('incidents-wrong', async (page, origin) => {
    await page.goto(`${origin}/operator/incidents`)
    await page.getByLabel('Title').fill('   ')
    await page.getByLabel('Description').fill('Nothing yet.')
    await page.getByRole('button', { name: 'Publish incident' }).click()
    await page.getByText('Enter a title').waitFor()
  }),
  operator('tickets', at('/operator/tickets')),
  operator('ticket', async (page, origin) => {
    await page.goto(`${origin}/operator/tickets`)
    await page.getByRole('link', { name: /^Every request fails since noon, and/ }).click()
    await page.getByRole('heading', { name: 'Message' }).waitFor()
  }),
  operator('ticket-closed', async (page, origin) => {
    await page.goto(`${origin}/operator/tickets`)
    await page.getByRole('link', { name: /^How do I/ }).click()
    await page.getByRole('button', { name: 'Reopen' }).waitFor()
  }),
  operator('confirm', at('/operator/confirm?next=/operator/operators')),
  operator('confirm-code', askToConfirm),
  operator('confirm-wrong', async (page, origin) => {
    await askToConfirm(page, origin)
    await page.getByLabel('Code').fill('12')
    await page.getByRole('button', { name: 'Confirm' }).click()
    await page.getByText('That code is not correct').waitFor()
  }),
  operator('not-found', at('/operator/accounts/acc_nothing')),
  operator('sign-in', async (page, origin) => {
    await page.context().clearCookies()
    await page.goto(`${origin}/operator`)
  }),
  operator('sign-in-wrong', async (page, origin) => {
    await page.goto(`${origin}/operator/sign-in`)
    await page.getByLabel('Email address').fill('nobody..at.all@example.com')
    await page.getByRole('button', { name: 'Send the code' }).click()
    await page.getByText('Enter an email address such as').waitFor()
  }),
  operator('code', (page, origin) => askForCode(page, origin, '/operator/sign-in', 'code@example.com')),
  operator('code-wrong', async (page, origin) => {
    await askForCode(page, origin, '/operator/sign-in', 'wrong-code@example.com')
    await page.getByLabel('Code').fill('12')
    await page.getByRole('button', { name: 'Continue' }).click()
    await page.getByText('That code is not correct').waitFor()
  }),
  operator('link-over', at('/operator/sign-in/link?token=none')),
]

/** Creates data that the console displays. */
async function fillDesks(service: Service): Promise<void> {
  const accountsDeps = { ...service.accountsDeps, store: service.store }
  await controlBackend(accountsDeps, { step: 'drained', backend: 'gamma', reason: 'maintenance' })
  for (const [name, decision] of [
    ['asks for managed access', undefined],
    ['has managed access', 'approved'],
    ['had no luck', 'rejected'],
  ] as const) {
    const { account } = await service.addAccount(name, 'max')
    const { id } = await requestManagedAccess(accountsDeps, account.id)
    if (decision !== undefined) await reviewManagedRequest(accountsDeps, id, decision)
  }
  await recordResale(accountsDeps, 'alpha', 'CONTRACT-17')
  const told = await openIncident(accountsDeps, {
    title: 'Emails are delayed',
    impact: 'minor',
    text: 'We are investigating.',
  })
  await updateIncident(accountsDeps, told.id, 'identified', 'A mail server of ours was full.')
  const support = { ...accountsDeps, mailTo: undefined, sendMail: undefined }
  const ticket = { accountId: service.account.id, email: 'asker@example.com', requestId: '' }
  await fileTicket(support, {
    ...ticket,
    text: 'Every request fails since noon, and nothing has changed at our side that we would know of.\nWhat do we do?',
  })
  const done = await fileTicket(support, { ...ticket, text: 'How do I change my address?' })
  if ('id' in done) await markTicket(accountsDeps, done.id, 'closed')
}

/** Creates data that the console displays. */
export async function fillConsole(service: Service): Promise<void> {
  for (const name of ['hopeful', 'a much longer name of an account that asks for more']) {
    const { account } = await service.addAccount(name, 'free')
    await requestUpgrade(upgradesDeps(service), account.id, 'pro')
  }
  await service.suspend((await service.addAccount('suspended & gone', 'free')).account.id)
  for (const role of ['support', 'viewer'] as const)
    await createOperator(operatorsDeps(service), `${role}@example.com`, role)
  await fillTokens(service)
  await fillDesks(service)
}

async function fillTokens(service: Service): Promise<void> {
  const tokensDeps = { ...service.accountsDeps, store: service.store }
  for (const [name, scope] of [
    ['deployment', 'write'],
    ['a dashboard with a rather long name', 'read'],
    ['old', 'read'],
  ] as const) {
    const { token } = await createAdminToken(tokensDeps, { name, scope, days: 30 })
    if (name === 'old') await revokeAdminToken(tokensDeps, token.id)
  }
}

/** Signs the browser of a page in to the console. */
export async function enterConsole(
  page: Page,
  service: Service,
  origin = service.config.appUrl,
  role: OperatorRole = 'admin',
): Promise<void> {
  const { store } = service
  const email = 'ada@example.com'
  const { id } =
    (await store.operators.findOperatorByEmail(email)) ?? (await createOperator(operatorsDeps(service), email, role))
  const link = await createOperatorLink({ ...service.accountsDeps, store }, id, origin)
  await page.goto(link.reveal())
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByRole('heading', { name: 'Overview' }).waitFor()
}
