import { beforeEach, describe, expect, test } from 'vitest'
import { openIncident, updateIncident } from '../../../src/accounts/status/incidents.ts'
import { StatusBoard } from '../../../src/accounts/status/status-board.ts'
import type { BackendState } from '../../../src/domain/backend-state.ts'
import type { ServiceEvent } from '../../../src/domain/events.ts'
import { shareOver } from '../../../src/domain/service-status.ts'
import { systemRandom } from '../../../src/runtime/random.ts'
import { SkippingClock } from '../../../src/simulation/skipping-clock.ts'
import { MemoryIncidents } from '../memory-incidents.ts'

type RequestEvent = Extract<ServiceEvent, { event: 'request' }>

let clock: SkippingClock
let store: MemoryIncidents
let states: Record<string, Partial<BackendState>>
const failing = { state: 'open', reason: 'failing' } as const
const rejected = { state: 'open', reason: 'credentials' } as const
let reasons: string[]
/** How many nodes serve, and how many of them fail for these reasons. */
let [nodes, failingNodes] = [1, 1]
let failures: unknown[]
let board: StatusBoard

beforeEach(() => {
  clock = new SkippingClock()
  store = new MemoryIncidents()
  states = {}
  reasons = []
  ;[nodes, failingNodes] = [1, 1]
  const condition = (id: string) => ({ state: 'closed' as const, reason: undefined, isTroubled: false, ...states[id] })
  failures = []
  board = new StatusBoard({
    clock,
    store,
    profiles: [
      { id: 'p', backends: ['alpha', 'beta', 'gamma'] },
      { id: 'own', backends: [] },
      { id: 'svc-router/frontier', backends: ['private'] },
    ],
    backends: ['alpha', 'beta', 'gamma'],
    configured: ['alpha', 'beta', 'gamma', 'private'],
    condition,
    health: () =>
      Promise.resolve({
        condition,
        lastHour: (id) => board.lastHour(id),
        serving: () => ({ of: nodes, nodes: nodes - (reasons.length > 0 ? failingNodes : 0), reason: reasons[0] }),
      }),
    onFailed: (error) => void failures.push(error),
  })
  return () => board[Symbol.asyncDispose]()
})

const note = (more: Partial<RequestEvent>): void =>
  board.note({
    event: 'request',
    requestId: 'req_1',
    accountId: 'acc_1',
    profile: 'p',
    format: 'openai-chat',
    outcome: 'answered',
    upstream: 'alpha',
    attempts: 1,
    failed: undefined,
    charged: 1,
    ms: 1,
    ...more,
  })
const read = () => {
  board.forget()
  return board.read()
}
const shareOf = async (kind: string, name: string): Promise<number | undefined> =>
  shareOver((await read()).components.find((part) => part.kind === kind && part.name === name)!.days)
const stateOf = async (name: string): Promise<string> =>
  (await read()).components.find((part) => part.name === name)!.state

describe('the counts', () => {
  test('an answer counts for its profile and its backend, and each failed attempt against its backend', async () => {
    note({})
    note({ upstream: 'beta', attempts: 2, failed: ['alpha'] })
    expect([
      await shareOf('profile', 'p'),
      await shareOf('backend', 'alpha'),
      await shareOf('backend', 'beta'),
    ]).toEqual([1, 0.5, 1])
    expect(await shareOf('backend', 'gamma')).toBeUndefined()
  })

  test('the last hour is counted for every configured backend, including those that the page does not show', () => {
    note({ upstream: 'private', ms: 300 })
    note({ upstream: 'private', ms: 100 })
    note({ upstream: 'beta', attempts: 2, failed: ['private'], ms: 9_000 })
    note({ upstream: 'up_mine', ms: 1 })
    expect(board.lastHour('private')).toEqual({ answered: 2, failed: 1, timed: 2, sumMs: 400 })
    // After a failed attempt, the time of the answer alone is unknown.
    expect(board.lastHour('beta')).toEqual({ answered: 1, failed: 0, timed: 0, sumMs: 0 })
    expect(board.lastHour('up_mine')).toEqual({ answered: 0, failed: 0, timed: 0, sumMs: 0 })
  })

  test('a backend that an operator drained is not an outage while other backends work', async () => {
    states['alpha'] = { state: 'drained', reason: 'drained' }
    expect([(await read()).indicator, await stateOf('alpha'), await stateOf('p')]).toEqual([
      'none',
      'maintenance',
      'operational',
    ])
    for (const name of ['alpha', 'beta', 'gamma']) states[name] = { state: 'drained', reason: 'drained' }
    await clock.skip(10_000)
    expect([(await read()).indicator, await stateOf('p')]).toEqual(['major', 'down'])
  })

  test('a profile without a public backend says who serves it', async () => {
    const notes = (await read()).components.filter(({ kind }) => kind === 'profile').map(({ note: text }) => text)
    expect(notes).toEqual([
      undefined,
      'has no backend that serves all accounts',
      'runs on each account’s own providers',
    ])
  })

  test('a failure counts against the profile, but client errors and disconnects do not', async () => {
    note({})
    note({ outcome: 'server_is_overloaded', failed: ['alpha'] })
    note({ outcome: 'content_rejected' })
    note({ outcome: 'client_closed' })
    note({ outcome: 'upstream_credentials_rejected', failed: ['alpha'] })
    note({ outcome: 'insufficient_quota', upstream: undefined, attempts: 0 })
    expect(await shareOf('profile', 'p')).toBe(0.5)
  })

  test('an account’s own backends do not count, whether they answer, fail, or cool down', async () => {
    note({ upstream: 'up_mine' })
    note({ outcome: 'server_is_overloaded', upstream: 'up_mine', failed: ['up_mine'] })
    note({ outcome: 'server_is_overloaded', upstream: undefined, attempts: 0 })
    expect(await shareOf('profile', 'p')).toBeUndefined()
    states = { alpha: failing, beta: failing, gamma: rejected }
    note({ outcome: 'server_is_overloaded', upstream: undefined, attempts: 0 })
    expect(await shareOf('profile', 'p')).toBe(0)
  })

  test('counts are written once a minute and at the end, and a failed write neither loses nor doubles any', async () => {
    note({})
    await clock.skip(61_000)
    expect(store.uptime.reduce((sum, { answered }) => sum + answered, 0)).toBe(2)
    store.failure = new Error('no')
    note({})
    await board.write()
    expect(failures.length).toBe(1)
    note({ outcome: 'upstream_broken', failed: ['alpha'] })
    expect(await shareOf('profile', 'p')).toBeCloseTo(2 / 3)
    await board[Symbol.asyncDispose]()
    expect(await shareOf('profile', 'p')).toBeCloseTo(2 / 3)
    expect(store.uptime.find(({ kind }) => kind === 'profile')).toMatchObject({ answered: 2, failed: 1 })
  })

  test('ninety days are shown, and older ones are not', async () => {
    note({})
    await clock.skip(89 * 86_400_000)
    note({ outcome: 'upstream_broken', failed: ['alpha'] })
    const { days } = (await read()).components.find(({ name }) => name === 'p')!
    expect([days.length, days[0]!.share, days[89]!.share]).toEqual([90, 1, 0])
    await clock.skip(86_400_000)
    expect(await shareOf('profile', 'p')).toBe(0)
  })
})

describe('the current state', () => {
  test('a profile works while any backend is usable, and the overall state is that of the worst component', async () => {
    expect([await stateOf('p'), (await read()).indicator]).toEqual(['operational', 'none'])
    states = { alpha: failing }
    expect([await stateOf('p'), await stateOf('alpha'), (await read()).indicator]).toEqual([
      'operational',
      'down',
      'minor',
    ])
    states = { alpha: failing, beta: rejected }
    expect(await stateOf('p')).toBe('degraded')
    states = { alpha: failing, beta: rejected, gamma: failing }
    expect([await stateOf('p'), await stateOf('own'), (await read()).indicator]).toEqual([
      'down',
      'operational',
      'major',
    ])
    reasons = ['draining']
    expect([await stateOf('API'), (await read()).indicator]).toEqual(['down', 'critical'])
    nodes = 3
    states = {}
    const partly = await read()
    expect(partly.indicator).toBe('minor')
    expect(partly.components[0]).toMatchObject({
      state: 'degraded',
      note: '1 of our 3 servers cannot serve requests',
    })
  })

  test('the state is read once in ten seconds for any number of callers, and immediately again after a failure', async () => {
    let looks = 0
    const listUptime = store.listUptime.bind(store)
    store.listUptime = (day) => {
      looks += 1
      return looks === 1 ? Promise.reject(new Error('no')) : listUptime(day)
    }
    await expect(board.read()).rejects.toThrow('no')
    await Promise.all(Array.from({ length: 50 }, () => board.read()))
    expect(looks).toBe(2)
    await clock.skip(10_000)
    await board.read()
    expect(looks).toBe(3)
  })
})

describe('incidents', () => {
  test('open incidents determine the indicator, and invalid texts are rejected', async () => {
    const accountsDeps = { store, clock, random: systemRandom(), actor: { kind: 'cli' } as const }
    const { id } = await openIncident(accountsDeps, { title: ' Slow ', impact: 'critical', text: 'We look.' })
    expect((await read()).indicator).toBe('critical')
    await updateIncident(accountsDeps, id, 'resolved', 'Fixed.')
    const { indicator, incidents } = await read()
    expect([indicator, incidents[0]!.title, incidents[0]!.updates.map(({ text }) => text)]).toEqual([
      'none',
      'Slow',
      ['Fixed.', 'We look.'],
    ])
    await expect(updateIncident(accountsDeps, 'inc_none', 'resolved', 'x')).rejects.toMatchObject({
      code: 'incident_unknown',
    })
    await expect(updateIncident(accountsDeps, id, 'resolved', '  ')).rejects.toMatchObject({ code: 'incident_invalid' })
    await expect(
      openIncident(accountsDeps, { title: 'x'.repeat(121), impact: 'minor', text: 'x' }),
    ).rejects.toMatchObject({
      code: 'incident_invalid',
    })
  })

  test('each incident is in the audit log by its ID, and only an operator can open one', async () => {
    const accountsDeps = {
      store,
      clock,
      random: systemRandom(),
      actor: { kind: 'operator', operatorId: 'opr_1' } as const,
    }
    const { id } = await openIncident(accountsDeps, { title: 'Slow', impact: 'minor', text: 'We look.' })
    await updateIncident(accountsDeps, id, 'identified', 'Found.')
    await updateIncident(accountsDeps, id, 'resolved', 'Fixed.')
    expect(store.records.map(({ actor, event }) => [actor, event])).toEqual(
      ['incident.opened', 'incident.updated', 'incident.resolved'].map((type) => [
        accountsDeps.actor,
        { type, incidentId: id },
      ]),
    )
    const nobody = { ...accountsDeps, actor: { kind: 'system' } as const }
    await expect(updateIncident(nobody, id, 'monitoring', 'x')).rejects.toMatchObject({ code: 'operator_only' })
    await expect(openIncident(nobody, { title: 'x', impact: 'minor', text: 'x' })).rejects.toMatchObject({
      code: 'operator_only',
    })
  })
})
