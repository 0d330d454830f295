import { expect, test } from 'vitest'
import { describeConfig } from '../../src/config/describe.ts'
import { errorOf, loadText, madeUpPepper, madeUpSealingKey } from './config-load.ts'

const env = { THEIRS: 'made-up', SVC_ROUTER_PEPPER: madeUpPepper, SVC_ROUTER_SEALING_KEY: madeUpSealingKey }
const production = 'mode: production\napp_url: https://app.example\n'
const backend = (settings: string): string => `backends:\n  a: {provider: openai, model: m, ${settings}}\n`

test('a managed backend has a credential and no account, even in production, and is listed as managed', () => {
  for (const head of ['', production]) {
    const config = loadText(head + backend('credential_env: THEIRS, managed: true'), { env })
    expect(config.backends[0]).toMatchObject({ managed: true, account: undefined })
    expect(describeConfig(config)).toContain('managed: true')
    expect(describeConfig(config)).not.toContain('account: local')
  }
  expect(loadText(backend('credential_env: THEIRS'), { env }).backends[0]?.managed).toBe(false)
})

test.each([
  ['also an account', 'credential_env: THEIRS, account: local, managed: true', 'remove "account"'],
  ['no credential', 'managed: true', 'add "credential_env"'],
])('a managed backend with %s is rejected', (_what, settings, fix) => {
  expect(errorOf(backend(settings), { env }).message).toContain(fix)
})

test('in production, a credential must belong to an account or be managed, and the error offers both', () => {
  expect(errorOf(production + backend('credential_env: THEIRS'), { env }).message).toContain('"managed: true"')
})
