import { describe, expect, test } from 'vitest'
import { describeConfig } from '../../src/config/describe.ts'
import { errorOf, loadText } from './config-load.ts'

const env = { STRIPE_SECRET_KEY: 'sk_test_made_up_0123', STRIPE_WEBHOOK_SECRET: 'whsec_made_up_0123' }
const sold = 'billing:\n  stripe:\n    prices: {pro: price_1AbCdEfGhIjKlMnOpQrStUv2, max: [price_2new, price_1old]}\n'

describe('billing settings', () => {
  test('by default, accounts request plans and an operator approves them', () => {
    expect(loadText('').billing).toBeUndefined()
    expect(loadText('billing:\n  grace: 2d\n').billing).toBeUndefined()
  })

  test("Stripe's secrets come from the environment, and each plan has one or more prices", () => {
    const { billing } = loadText(sold, { env })
    expect(billing?.graceMs).toBe(7 * 86_400_000)
    expect(billing?.stripe?.secretKey.reveal()).toBe(env.STRIPE_SECRET_KEY)
    expect(billing?.stripe?.webhookSecret.reveal()).toBe(env.STRIPE_WEBHOOK_SECRET)
    expect([...billing!.stripe!.prices]).toEqual([
      ['pro', ['price_1AbCdEfGhIjKlMnOpQrStUv2']],
      ['max', ['price_2new', 'price_1old']],
    ])
  })

  test('the described configuration contains no secret', () => {
    const text = describeConfig(loadText(sold, { env }))
    expect(text).toContain('price_2new')
    expect(text).not.toContain('made_up')
  })

  test.each([
    ['an empty secret', sold, { ...env, STRIPE_WEBHOOK_SECRET: ' ' }, 'STRIPE_WEBHOOK_SECRET is not set'],
    ['a missing key', sold, { STRIPE_WEBHOOK_SECRET: 'whsec_made_up' }, 'STRIPE_SECRET_KEY is not set'],
    ['a plan that is not there', 'billing: {stripe: {prices: {gold: price_1}}}', env, 'there is no plan "gold"'],
    [
      'the same price for two plans',
      'billing: {stripe: {prices: {pro: price_1, max: price_1}}}',
      env,
      'two plans have the same price',
    ],
    ['no price at all', 'billing: {stripe: {prices: {}}}', env, 'no plan has a price'],
    ['something that is no price', 'billing: {stripe: {prices: {pro: prod_1}}}', env, 'Stripe price ID'],
    [
      'the key itself',
      'billing: {stripe: {secret_key_env: sk_test_0123456789abcdef, prices: {pro: price_1}}}',
      env,
      'the file contains a secret',
    ],
    ['simulated and real payments', `${sold}  simulated: true\n`, env, 'either Stripe or the simulation'],
    [
      'simulated payments in production',
      'billing: {simulated: true}',
      { ...env, NODE_ENV: 'production' },
      'simulated payments are not allowed in production',
    ],
  ] as const)('%s is a problem with its place', (_what, text, given, told) => {
    const { problems } = errorOf(text, { env: given })
    expect(problems.map(({ what, fix }) => `${what}; ${fix}`).join('\n')).toContain(told)
  })
})
