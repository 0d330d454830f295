import { afterEach, beforeEach, expect, test } from 'vitest'
import { Harness } from '../harness.ts'

let cli: Harness
beforeEach(() => {
  cli = new Harness()
  cli.isStoreReal = true
  cli.hasStore = true
})
afterEach(() => cli.remove())

test('operators can be created, listed, given another role, and removed', async () => {
  const made = await cli.say('operators', 'create', 'Ada@Example.com', '--role', 'admin')
  expect(made.code, made.err).toBe(0)
  expect(made.out).toMatch(/^opr_/)
  expect(made.err).toContain('operators sign-in-link ada@example.com')
  expect((await cli.say('operators', 'create', 'bob@example.com', '--role', 'viewer')).code).toBe(0)
  expect((await cli.say('operators', 'role', 'bob@example.com', '--role', 'support')).err).toContain(
    'now has the role support',
  )
  const listed = await cli.say('operators', 'list')
  expect(listed.out).toContain('ada@example.com  admin    active')
  expect(listed.out).toContain('bob@example.com  support  active')
  expect((await cli.say('operators', 'remove', 'bob@example.com')).code).toBe(0)
  const json = JSON.parse((await cli.say('operators', 'list', '--json')).out) as { email: string; state: string }[]
  expect(json.map(({ email, state }) => [email, state])).toEqual([
    ['ada@example.com', 'active'],
    ['bob@example.com', 'removed'],
  ])
  const log = (await cli.say('audit', 'list')).out
  for (const type of ['operator.created', 'operator.role_changed', 'operator.removed']) expect(log).toContain(type)
  expect(log).not.toContain('example.com')
})

test('a link signs an operator in to the console', async () => {
  await cli.say('operators', 'create', 'ada@example.com', '--role', 'admin')
  const link = await cli.say('operators', 'sign-in-link', 'ada@example.com')
  expect(link.out).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/operator\/sign-in\/link\?token=[\w-]{43}$/)
  expect(link.err).toContain('within 15 minutes')
})

test('the last admin cannot be removed, addresses are unique, and roles must exist', async () => {
  await cli.say('operators', 'create', 'ada@example.com', '--role', 'admin')
  const refused = async (...args: string[]): Promise<string> => {
    const { code, err } = await cli.say('operators', ...args)
    expect(code).not.toBe(0)
    return err
  }
  expect(await refused('remove', 'ada@example.com')).toContain('this is the only admin')
  expect(await refused('role', 'ada@example.com', '--role', 'viewer')).toContain('this is the only admin')
  expect(await refused('role', 'ada@example.com', '--role', 'admin')).toContain('already has that role')
  expect(await refused('create', 'ADA@example.com', '--role', 'viewer')).toContain(
    'an operator with this address already exists',
  )
  expect(await refused('create', 'nobody', '--role', 'viewer')).toContain('EMAIL must be an email address')
  expect(await refused('create', 'bob@example.com', '--role', 'king')).toContain('--role must be one of')
  expect(await refused('create', 'bob@example.com')).toContain('--role is missing')
  expect((await cli.say('operators', 'create', '--help')).out).toMatch(/--role ROLE .* Required\.$/m)
  expect(await refused('sign-in-link', 'bob@example.com')).toContain('no such operator')
})
