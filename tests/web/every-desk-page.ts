import { controlBackend } from '../../src/accounts/backend-controls.ts'
import { openIncident, updateIncident } from '../../src/accounts/incidents.ts'
import { recordResale, requestManagedAccess, reviewManagedRequest } from '../../src/accounts/managed-access.ts'
import { fileTicket } from '../../src/accounts/support.ts'
import { markTicket } from '../../src/accounts/tickets.ts'
import type { Service } from '../service.ts'
import type { PageState } from './every-page.ts'

const desk = (name: string, show: PageState['show']): PageState => ({ name: `operator-${name}`, as: 'operator', show })
const at =
  (path: string): PageState['show'] =>
  async (page, origin) =>
    void (await page.goto(`${origin}${path}`))
const openAll =
  (path: string): PageState['show'] =>
  async (page, origin) => {
    await page.goto(`${origin}${path}`)
    for (const summary of await page.locator('summary').all()) await summary.click()
  }
const dryRun = (query: string): PageState['show'] => at(`/operator/dry-run?format=openai-chat&${query}`)

/** The console's desks in every state that looks different. */
export const everyDeskPage: readonly PageState[] = [
  desk('backends', at('/operator/backends')),
  desk('backend', at('/operator/backends/alpha')),
  desk('backend-open', openAll('/operator/backends/beta')),
  desk('backend-drained', at('/operator/backends/gamma?done=backend-drained')),
  desk('backend-again', async (page, origin) => {
    await page.goto(`${origin}/operator/backends/beta`)
    await page.locator('summary', { hasText: 'Quarantine' }).click()
    await page.getByRole('button', { name: 'Quarantine it' }).click()
    await page.getByText('It is quarantined').waitFor()
    await page.getByRole('button', { name: 'Release' }).click()
    await page.getByText('It is released').waitFor()
  }),
  desk('profiles', at('/operator/profiles')),
  desk('dry-run', at('/operator/dry-run?profile=svc-router/frontier')),
  desk('dry-run-answer', dryRun('profile=svc-router/frontier&tokens=90000&plan=max&images=on')),
  desk('dry-run-own', dryRun('profile=svc-router/frontier&tokens=500&account=tester')),
  desk('dry-run-fusion', dryRun('profile=svc-router/fusion&tokens=500&plan=max')),
  desk('dry-run-refused', dryRun('profile=svc-router/fusion&tokens=500&plan=free')),
  desk('dry-run-wrong', dryRun('profile=svc-router/frontier&tokens=many')),
  desk('managed-access', at('/operator/managed-access')),
  desk('managed-access-on', async (page, origin) => {
    await page.goto(`${origin}/operator/managed-access`)
    await page.getByRole('button', { name: 'Switch it on' }).click()
    await page.getByRole('button', { name: 'Switch it off' }).waitFor()
    for (const summary of await page.locator('summary').all()) await summary.click()
  }),
  desk('incidents', at('/operator/incidents')),
  desk('incidents-open', openAll('/operator/incidents')),
  desk('incidents-wrong', async (page, origin) => {
    await page.goto(`${origin}/operator/incidents`)
    await page.getByLabel('Title').fill('   ')
    await page.getByLabel('What is known').fill('Nothing yet.')
    await page.getByRole('button', { name: 'Put it on the status page' }).click()
    await page.getByText('It needs a title').waitFor()
  }),
  desk('tickets', at('/operator/tickets')),
  desk('ticket', async (page, origin) => {
    await page.goto(`${origin}/operator/tickets`)
    await page.getByRole('link', { name: /^Every request fails since noon, and/ }).click()
    await page.getByRole('heading', { name: 'What was asked' }).waitFor()
  }),
  desk('ticket-closed', async (page, origin) => {
    await page.goto(`${origin}/operator/tickets`)
    await page.getByRole('link', { name: /^How do I/ }).click()
    await page.getByRole('button', { name: 'Open it again' }).waitFor()
  }),
]

/** Gives the desks something to show. */
export async function fillDesks(service: Service): Promise<void> {
  const plane = { ...service.plane, store: service.store }
  await controlBackend(plane, { step: 'drained', backend: 'gamma', reason: 'maintenance' })
  for (const [name, decision] of [
    ['asks for managed access', undefined],
    ['has managed access', 'approved'],
    ['had no luck', 'rejected'],
  ] as const) {
    const { account } = await service.addAccount(name, 'max')
    const { id } = await requestManagedAccess(plane, account.id)
    if (decision !== undefined) await reviewManagedRequest(plane, id, decision)
  }
  await recordResale(plane, 'alpha', 'CONTRACT-17')
  const told = await openIncident(plane, { title: 'Letters are late', impact: 'minor', text: 'We look into it.' })
  await updateIncident(plane, told.id, 'identified', 'A mail server of ours was full.')
  const support = { ...plane, mailTo: undefined, sendMail: undefined }
  const ticket = { accountId: service.account.id, email: 'asker@example.com', requestId: '' }
  await fileTicket(support, {
    ...ticket,
    text: 'Every request fails since noon, and nothing has changed at our side that we would know of.\nWhat do we do?',
  })
  const done = await fileTicket(support, { ...ticket, text: 'How do I change my address?' })
  if ('id' in done) await markTicket(plane, done.id, 'closed')
}
