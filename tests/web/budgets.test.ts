import { describe, expect, test } from 'vitest'
import { setBudget } from '../../src/accounts/budgets.ts'
import type { Service } from '../service.ts'
import { shareService } from '../shared-service.ts'
import { nanoPerUsd, setTestBudget } from '../test-budgets.ts'
import { signedInTo } from './browser-less.ts'

const start = shareService()

/** The fields of the form that changes the limit of a budget, as a browser would send them. */
function fieldsOfChange(text: string): Record<string, string> {
  const [form = ''] = /<summary>Change the limit[\s\S]*?<\/form>/.exec(text) ?? []
  const hidden = form.matchAll(/<input type="hidden" name="(scope|window|unit)" value="([^"]*)"/g)
  return Object.fromEntries(Array.from(hidden, ([, name, value]) => [name!, value!]))
}

const limitsOf = async (service: Service) =>
  (await service.store.listBudgets(service.account.id)).map(({ setBy, limit }) => [setBy, limit / nanoPerUsd])

describe('the page of budgets', () => {
  test.each([
    { scope: 'account', subject: '', window: 'month', rolling: false },
    { scope: 'profile', subject: 'svc-router/frontier', window: '5h', rolling: true },
  ] as const)('changes the limit of a budget of $scope in place', async (kind) => {
    const service = await start()
    const visitor = await signedInTo(service)
    await setTestBudget(service, { ...kind, limit: 20 * nanoPerUsd })
    const fields = fieldsOfChange(await (await visitor.get('/account/budgets')).text())
    const changed = await visitor.post('/account/budgets', { ...fields, amount: '30.50' })
    expect(changed.headers.get('location')).toBe('/account/budgets?done=budget-set')
    expect(await limitsOf(service)).toEqual([['account', 30.5]])
  })

  test.each([
    ['1,000', 1_000],
    ['12,345.50', 12_345.5],
    ['5,5', undefined],
    ['1,00', undefined],
    ['1.000,50', undefined],
  ])('reads the amount %s as %s: commas only separate thousands', async (amount, limit) => {
    const service = await start()
    const visitor = await signedInTo(service)
    const fields = { scope: 'account', window: 'month', unit: 'usd' }
    const answer = await visitor.post('/account/budgets', { ...fields, amount })
    expect(answer.status).toBe(limit === undefined ? 422 : 303)
    expect(await limitsOf(service)).toEqual(limit === undefined ? [] : [['account', limit]])
  })

  test('changes made at the same time to one budget all succeed', async () => {
    const service = await start()
    const deps = { ...service.accountsDeps, store: service.store }
    const kind = { scope: 'account', subject: '', unit: 'usd', window: 'month', rolling: false } as const
    const set = (limit: number) => setBudget(deps, service.account.id, { ...kind, limit }, 'account', [])
    const budgets = await Promise.all([1, 2, 3].map((usd) => set(usd * nanoPerUsd)))
    expect(new Set(budgets.map(({ id }) => id)).size).toBe(1)
  })

  test('offers no form for a budget of the operator, and says who can change it', async () => {
    const service = await start()
    const visitor = await signedInTo(service)
    await setTestBudget(service, { limit: 20 * nanoPerUsd, setBy: 'operator' })
    const text = await (await visitor.get('/account/budgets')).text()
    expect(text).toContain('set by the operator')
    expect(text).toContain('Only the operator of this service can change')
    expect(text).not.toContain('Change the limit')
    await visitor.post('/account/budgets', { scope: 'account', window: 'month', unit: 'usd', amount: '1000' })
    expect(await limitsOf(service)).toEqual([
      ['operator', 20],
      ['account', 1_000],
    ])
  })

  test('says when more of a sliding budget becomes available only if some is used', async () => {
    const service = await start()
    const visitor = await signedInTo(service)
    await setTestBudget(service, { limit: 1_000_000, unit: 'tokens', rolling: true })
    const text = async (): Promise<string> => (await visitor.get('/account/budgets')).text()
    expect(await text()).not.toContain('More becomes available')
    await (await service.chat()).text()
    await expect.poll(text).toContain('More becomes available on')
  })

  test('the page of keys shows the budgets of each key', async () => {
    const service = await start()
    const visitor = await signedInTo(service)
    const { stored } = await service.addNamedKey('worker')
    await setTestBudget(service, { limit: 20 * nanoPerUsd, scope: 'key', subject: stored.id })
    const text = await (await visitor.get('/account/keys')).text()
    expect(text.replaceAll(/\s+/g, ' ')).toMatch(/worker.*Monthly budget: 0(?:\.00)? USD of 20\.00 USD spent/)
    expect(await (await visitor.get('/account/budgets')).text()).toContain(`<code>${stored.id}</code>`)
  })

  test('says that nobody gets alerts, and how to change that', async () => {
    const service = await start()
    const visitor = await signedInTo(service)
    expect(await (await visitor.get('/account/budgets')).text()).toContain(
      'You do not get alerts yet. To be told when a budget is nearly used up',
    )
  })
})
