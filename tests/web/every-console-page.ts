import type { Page } from 'playwright-core'
import { createOperator } from '../../src/accounts/operators.ts'
import { requestUpgrade } from '../../src/accounts/billing/upgrade-requests.ts'
import { createOperatorLink } from '../../src/accounts/proofs.ts'
import type { OperatorRole } from '../../src/domain/operators.ts'
import type { Service } from '../service.ts'
import { everyDeskPage, fillDesks } from './every-desk-page.ts'
import type { PageState } from './every-page.ts'
import { operatorsPlane, upgradesPlane } from './operator.ts'

const operator = (name: string, show: PageState['show']): PageState => ({
  name: `operator-${name}`,
  as: 'operator',
  show,
})
const at =
  (path: string): PageState['show'] =>
  async (page, origin) =>
    void (await page.goto(`${origin}${path}`))

/** Shows a page and opens everything on it that opens. */
const openAll =
  (path: string): PageState['show'] =>
  async (page, origin) => {
    await page.goto(`${origin}${path}`)
    for (const summary of await page.locator('summary').all()) await summary.click()
  }

async function toAccount(page: Page, origin: string, name: string): Promise<void> {
  await page.goto(`${origin}/operator/accounts`)
  await page.getByRole('link', { name, exact: true }).click()
  await page.getByRole('heading', { name: 'Keys' }).waitFor()
}

async function askForCode(page: Page, origin: string, email: string): Promise<void> {
  await page.goto(`${origin}/operator/sign-in`)
  await page.getByLabel('Email address').fill(email)
  await page.getByRole('button', { name: 'Send the code' }).click()
  await page.getByLabel('Code').waitFor()
}

async function askToConfirm(page: Page, origin: string): Promise<void> {
  await page.goto(`${origin}/operator/confirm`)
  await page.getByRole('button', { name: 'Send the code' }).click()
  await page.getByLabel('Code').waitFor()
}

/** The console as somebody sees it where nobody operates the service yet. */
export const consoleForNobody: readonly PageState[] = [
  { name: 'operator-first', as: 'nobody', show: at('/operator/sign-in') },
]

/** Every page of the console in every state that looks different; the last ones are seen from outside. */
export const everyConsolePage: readonly PageState[] = [
  operator('overview', at('/operator')),
  operator('overview-notice', at('/operator?done=operator-in')),
  operator('accounts', at('/operator/accounts')),
  operator('accounts-none', async (page, origin) => {
    await page.goto(`${origin}/operator/accounts`)
    await page.getByLabel('Id, email address').fill('nobody is called so')
    await page.getByRole('button', { name: 'Find' }).click()
    await page.getByText('No account is like that').waitFor()
  }),
  operator('account', (page, origin) => toAccount(page, origin, 'tester')),
  operator('account-open', async (page, origin) => {
    await toAccount(page, origin, 'tester')
    for (const summary of await page.locator('summary').all()) await summary.click()
  }),
  operator('account-suspended', (page, origin) => toAccount(page, origin, 'suspended & gone')),
  operator('requests', at('/operator/requests')),
  operator('requests-decided', async (page, origin) => {
    await page.goto(`${origin}/operator/requests`)
    await page.getByRole('button', { name: 'Approve for hopeful' }).click()
    await page.getByText('Decided lately').waitFor()
  }),
  operator('operators', at('/operator/operators')),
  operator('operators-open', openAll('/operator/operators')),
  operator('operators-wrong', async (page, origin) => {
    await page.goto(`${origin}/operator/operators`)
    await page.getByLabel('Email address').fill('ada@example.com')
    await page.getByRole('button', { name: 'Add the operator' }).click()
    await page.getByText('has this address already').waitFor()
  }),
  operator('audit', at('/operator/audit')),
  operator('audit-verified', async (page, origin) => {
    await page.goto(`${origin}/operator/audit`)
    await page.getByRole('button', { name: 'Verify now' }).click()
    await page.getByText('The log was verified').waitFor()
  }),
  operator('audit-none', at('/operator/audit?account=acc_nothing')),
  ...everyDeskPage,
  operator('confirm', at('/operator/confirm?next=/operator/operators')),
  operator('confirm-code', askToConfirm),
  operator('confirm-wrong', async (page, origin) => {
    await askToConfirm(page, origin)
    await page.getByLabel('Code').fill('12')
    await page.getByRole('button', { name: 'Confirm' }).click()
    await page.getByText('That is not the code').waitFor()
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
    await page.getByText('That is not an email address').waitFor()
  }),
  operator('code', (page, origin) => askForCode(page, origin, 'code@example.com')),
  operator('code-wrong', async (page, origin) => {
    await askForCode(page, origin, 'wrong-code@example.com')
    await page.getByLabel('Code').fill('12')
    await page.getByRole('button', { name: 'Go on' }).click()
    await page.getByText('That is not the code').waitFor()
  }),
  operator('link-over', at('/operator/sign-in/link?token=none')),
]

/** Gives the console something to show. */
export async function fillConsole(service: Service): Promise<void> {
  for (const name of ['hopeful', 'a much longer name of an account that asks for more']) {
    const { account } = await service.addAccount(name, 'free')
    await requestUpgrade(upgradesPlane(service), account.id, 'pro')
  }
  await service.suspend((await service.addAccount('suspended & gone', 'free')).account.id)
  for (const role of ['support', 'viewer'] as const)
    await createOperator(operatorsPlane(service), `${role}@example.com`, role)
  await fillDesks(service)
}

/** Signs a page's browser in to the console. */
export async function enterConsole(
  page: Page,
  service: Service,
  origin = service.config.appUrl,
  role: OperatorRole = 'admin',
): Promise<void> {
  const { store } = service
  const email = 'ada@example.com'
  const { id } =
    (await store.operators.findOperatorByEmail(email)) ?? (await createOperator(operatorsPlane(service), email, role))
  const link = await createOperatorLink({ ...service.plane, store }, id, origin)
  await page.goto(link.reveal())
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByRole('heading', { name: 'Overview' }).waitFor()
}
