import { afterEach, beforeEach, expect, test } from 'vitest'
import { exitCodes } from '../../../src/cli/failures.ts'
import { Harness } from '../harness.ts'

let cli: Harness
beforeEach(async () => {
  cli = new Harness()
  cli.isStoreReal = true
  expect((await cli.say('accounts', 'create', 'a')).code).toBe(0)
})
afterEach(() => cli.remove())

test('a token is printed once, listed without itself, and revoked', async () => {
  const created = await cli.say('admin-tokens', 'create', 'deploy', '--scope', 'write', '--days', '30')
  expect(created.out).toMatch(/^sk_svc_admin_[\w-]{43}$/)
  expect(created.err).toContain('The admin API is off.')
  const listed = await cli.say('admin-tokens', 'list', '--json')
  expect(listed.out).not.toContain(created.out)
  const [token] = JSON.parse(listed.out) as { id: string; scope: string; state: string }[]
  expect(token).toMatchObject({ scope: 'write', state: 'active' })
  expect((await cli.say('admin-tokens', 'revoke', token!.id)).code).toBe(exitCodes.usage)
  expect((await cli.say('admin-tokens', 'revoke', token!.id, '--yes')).code).toBe(0)
  expect((await cli.say('admin-tokens', 'list')).out).toContain('revoked')
  expect((await cli.say('admin-tokens', 'revoke', token!.id, '--yes')).code).toBe(1)
  const types = (JSON.parse((await cli.say('audit', 'list', '--json')).out) as { event: { type: string } }[]).map(
    ({ event }) => event.type,
  )
  expect(types.slice(0, 2)).toEqual(['admin_token.revoked', 'admin_token.created'])
})

test.each([
  ['--scope', 'all'],
  ['--days', '0'],
  ['--days', '366'],
])('%s %s is refused', async (...option) => {
  expect((await cli.say('admin-tokens', 'create', 'x', ...option)).code).toBe(exitCodes.usage)
})
