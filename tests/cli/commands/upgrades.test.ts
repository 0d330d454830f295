import { afterEach, beforeEach, expect, test } from 'vitest'
import type { UpgradesDeps } from '../../../src/accounts/billing/billing-deps.ts'
import { requestUpgrade, withdrawUpgrade } from '../../../src/accounts/billing/upgrade-requests.ts'
import { defaultPlans } from '../../../src/domain/plans.ts'
import { systemClock } from '../../../src/runtime/clock.ts'
import { systemRandom } from '../../../src/runtime/random.ts'
import { someRecord } from '../../audit-record.ts'
import { Harness } from '../harness.ts'

let cli: Harness
let deps: UpgradesDeps
beforeEach(async () => {
  cli = new Harness()
  deps = {
    accounts: cli.store,
    actor: { kind: 'cli' },
    store: cli.billing,
    clock: systemClock(),
    random: systemRandom(),
    plans: defaultPlans,
    defaultPlan: 'free',
    graceMs: 0,
  }
  for (const id of ['acc_1', 'acc_2'])
    await cli.store.addAccount({ id, name: id, planId: 'free', suspended: false, createdAtMs: 1 }, someRecord())
})
afterEach(() => cli.remove())

const planOf = async (id: string): Promise<string | undefined> => (await cli.store.findAccount(id))?.planId

test('an operator lists requests, approves one, and rejects another', async () => {
  const wanted = await requestUpgrade(deps, 'acc_1', 'pro')
  const other = await requestUpgrade(deps, 'acc_2', 'max')
  const listed = await cli.say('upgrades', 'list')
  expect(listed.code).toBe(0)
  expect(listed.out).toContain(wanted.id)
  expect(listed.out).toContain(other.id)
  const approved = await cli.say('upgrades', 'approve', wanted.id, '--json')
  expect(JSON.parse(approved.out)).toMatchObject({ id: wanted.id, state: 'approved', planId: 'pro' })
  expect((await cli.say('upgrades', 'reject', other.id)).code).toBe(0)
  expect([await planOf('acc_1'), await planOf('acc_2')]).toEqual(['pro', 'free'])
  expect((await cli.say('upgrades', 'list')).err).toContain('There are no requests.')
  expect((await cli.say('upgrades', 'list', '--all')).out).toMatch(/rejected[\s\S]*approved|approved[\s\S]*rejected/)
})

test('a decided or unknown request cannot be approved, and the error says what to do', async () => {
  const { id } = await requestUpgrade(deps, 'acc_1', 'pro')
  await withdrawUpgrade(deps, 'acc_1', id)
  const decided = await cli.say('upgrades', 'approve', id)
  expect(decided.code).toBe(1)
  expect(decided.err).toContain('already decided or withdrawn')
  const unknown = await cli.say('upgrades', 'reject', 'upg_nothing')
  expect(unknown.err).toContain('there is no such upgrade request')
  expect(unknown.err).toContain('upgrades list')
  expect((await cli.say('upgrades', 'approve')).code).toBe(2)
  expect(await planOf('acc_1')).toBe('free')
})

test('an account can request one existing plan at a time, other than its own', async () => {
  const refusal = (code: string): object => expect.objectContaining({ name: 'AccountsError', code }) as object
  await expect(requestUpgrade(deps, 'acc_1', 'gold')).rejects.toEqual(refusal('plan_unknown'))
  await expect(requestUpgrade(deps, 'acc_1', 'free')).rejects.toEqual(refusal('plan_same'))
  await expect(requestUpgrade(deps, 'acc_9', 'pro')).rejects.toEqual(refusal('account_unknown'))
  const { id } = await requestUpgrade(deps, 'acc_1', 'pro')
  await expect(requestUpgrade(deps, 'acc_1', 'max')).rejects.toEqual(refusal('upgrade_open'))
  await expect(withdrawUpgrade(deps, 'acc_2', id)).rejects.toEqual(refusal('upgrade_unknown'))
  await withdrawUpgrade(deps, 'acc_1', id)
  await expect(withdrawUpgrade(deps, 'acc_1', id)).rejects.toEqual(refusal('upgrade_decided'))
  expect((await requestUpgrade(deps, 'acc_1', 'max')).state).toBe('requested')
})
