import { afterEach, beforeEach, expect, test } from 'vitest'
import type { RoutingPlan } from '../../../src/domain/routing-plan.ts'
import { Harness } from '../harness.ts'

let harness: Harness
beforeEach(async () => {
  harness = new Harness()
  harness.isStoreReal = true
  harness.env['SVC_ROUTER_SEALING_KEY'] = 'ab'.repeat(32)
  harness.env['SVC_ROUTER_PEPPER'] = 'made-up-pepper-of-the-tests'
  expect((await harness.say('accounts', 'create', 'mine', '--plan', 'max')).code).toBe(0)
})
afterEach(() => harness.remove())

async function plan(...args: readonly string[]): Promise<RoutingPlan> {
  const { out, err } = await harness.say('profiles', 'dry-run', ...args, '--json')
  expect(err).toBe('')
  return JSON.parse(out) as RoutingPlan
}

test('the dry run lists the backends in order, and those that are skipped', async () => {
  expect((await plan('svc-router/frontier')).asked.map(({ backend }) => backend)).toEqual([
    'simulated-alpha',
    'simulated-beta',
    'simulated-gamma',
  ])
  await harness.say('backends', 'drain', 'simulated-alpha')
  const { asked, leftOut } = await plan('svc-router/frontier', '--images', '--tools', '--stream', '--tokens', '5000')
  expect(asked.map(({ backend }) => backend)).toEqual(['simulated-beta', 'simulated-gamma'])
  expect(leftOut).toEqual([{ backend: 'simulated-alpha', reason: 'drained' }])
  const { out, err } = await harness.say('profiles', 'dry-run', 'svc-router/frontier')
  expect(out).toMatch(/1 +simulated-beta +\w+\n2 +simulated-gamma/)
  expect(out).toMatch(/- +simulated-alpha +drained by an operator/)
  expect(err).toContain('exist only in the running service')
})

test('the dry run for a plan reports what the plan does not allow', async () => {
  const refused = await plan('svc-router/fusion', '--plan', 'free')
  expect(refused.refusal).toMatchObject({ code: 'plan_required' })
  expect((await harness.say('profiles', 'dry-run', 'svc-router/fusion', '--plan', 'free')).out).toContain(
    'Rejected before any backend is called: plan_required',
  )
  const fused = await plan('svc-router/fusion', '--plan', 'max')
  expect(fused.panel?.asked.length).toBeGreaterThan(1)
})

test.each([
  [[], 'the profile is missing'],
  [['svc-router/frontier', '--format', 'morse'], '--format must be one of'],
  [['frontier'], 'did you mean "svc-router/frontier"?'],
  [['svc-router/frontier', '--plan', 'platinum'], 'there is no such plan'],
  [['svc-router/frontier', '--tokens', '0'], '--tokens'],
])('invalid arguments are explained: %j', async (args, sentence) => {
  const { code, err } = await harness.say('profiles', 'dry-run', ...args)
  expect(code).not.toBe(0)
  expect(err).toContain(sentence)
})
