import { afterEach, beforeEach, expect, test } from 'vitest'
import { Harness, type Spoken } from '../harness.ts'

let cli: Harness

beforeEach(async () => {
  cli = new Harness()
  cli.isStoreReal = true
  cli.env = { SVC_ROUTER_SEALING_KEY: 'ab'.repeat(32), SVC_ROUTER_PEPPER: 'made-up-pepper-of-the-tests' }
  await run('accounts', 'create', 'ada')
})
afterEach(() => cli.remove())

async function run(...args: string[]): Promise<Spoken> {
  const spoken = await cli.say(...args)
  expect(spoken.code, spoken.err).toBe(0)
  return spoken
}

const list = async () => JSON.parse((await run('webhooks', 'list', '--json')).out) as { id: string; url: string }[]

test('a webhook is added with its secret, listed without it, rotated, and removed', async () => {
  const added = await run('webhooks', 'add', 'https://hooks.example.com/a')
  const secret = added.out.trim()
  expect(secret).toMatch(/^whs_\w{40}$/)
  const [webhook] = await list()
  expect(webhook).toMatchObject({ url: 'https://hooks.example.com/a', former_secret_until_ms: null, deliveries: [] })
  expect(added.err).toContain(`webhooks test ${webhook!.id}`)
  const shown = await run('webhooks', 'list')
  expect(shown.out).toContain('https://hooks.example.com/a')
  expect(shown.out + shown.err).not.toContain(secret)
  const rotated = await run('webhooks', 'rotate', webhook!.id)
  expect(rotated.out.trim()).toMatch(/^whs_\w{40}$/)
  expect(rotated.out.trim()).not.toBe(secret)
  await run('webhooks', 'remove', webhook!.id)
  expect(await list()).toEqual([])
})

test.each([
  [['webhooks', 'add', 'hooks.example.com'], 'must begin with https://'],
  [['webhooks', 'rotate', 'whk_1'], 'has no such webhook'],
  [['webhooks', 'test', 'whk_1'], 'has no such webhook'],
  [['webhooks', 'remove', 'whk_1'], 'has no such webhook'],
  [['webhooks', 'remove'], 'the ID of the webhook is missing'],
])('%j is refused', async (args, problem) => {
  const spoken = await cli.say(...args)
  expect(spoken.code).not.toBe(0)
  expect(spoken.err).toContain(problem)
})
