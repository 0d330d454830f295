import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { ServiceError } from '../../src/domain/errors.ts'
import { estimateTokens } from '../../src/domain/estimate-tokens.ts'
import { clientFormatIds, formatIds } from '../../src/domain/format-id.ts'
import { linksFor } from '../../src/domain/links.ts'
import type { Plan } from '../../src/domain/plans.ts'
import { fusionId, type Profile } from '../../src/domain/profiles.ts'
import type { ExcludedBackend, RoutingQuestion } from '../../src/domain/routing-plan.ts'
import { UpstreamError } from '../../src/domain/upstream.ts'
import { formatById, relayById } from '../../src/formats/formats.ts'
import { DigestCache } from '../../src/gateway/auth/digest-cache.ts'
import { KeyCache } from '../../src/gateway/auth/key-cache.ts'
import { Gateway } from '../../src/gateway/gateway.ts'
import type { Backend, Principal } from '../../src/gateway/ports.ts'
import { planRouting } from '../../src/gateway/routing-planner.ts'
import { BackendStatistics } from '../../src/gateway/routing/backend-statistics.ts'
import { CircuitBreakers } from '../../src/gateway/routing/circuit-breakers.ts'
import { LearnedLimits } from '../../src/gateway/routing/learned-limits.ts'
import { sampleRequest } from '../../src/gateway/routing/sample-request.ts'
import { signals } from '../simulation/simulated-gateway.ts'
import { FakeSink } from './fake-gateway.ts'
import { ManualClock } from './manual-clock.ts'
import { failOnce } from './routing/breaker-outcomes.ts'

const premium: Plan = { id: 'max', name: 'Max', requestsPerMinute: 10, requestsPerMonth: 10, premium: true }
const free: Plan = { ...premium, id: 'free', name: 'Free', premium: false }
const profile: Profile = { id: 'p', description: '', backends: [], premium: false, quotaUnits: 1 }
const fusion: Profile = { ...profile, id: fusionId, premium: true }
const question: RoutingQuestion = {
  profile: 'p',
  format: 'openai-chat',
  stream: false,
  images: false,
  tools: false,
  tokens: 100,
}

/** The state of one backend. */
interface Situation {
  readonly format: Backend['format']
  readonly failureDomain: string
  readonly contextWindow: number | undefined
  readonly capabilities: Backend['capabilities']
  readonly hold: 'drained' | 'quarantined' | undefined
  readonly seen: 'nothing' | 'rate' | 'credentials' | 'failing'
  /** Whether it answers successfully. */
  readonly isWell: boolean
}

const well: Situation = {
  format: 'openai-chat',
  failureDomain: 'd',
  contextWindow: undefined,
  capabilities: undefined,
  hold: undefined,
  seen: 'nothing',
  isWell: true,
}

/** The real gateway and planner over the same backends, which record each request. */
class World {
  readonly asked: string[] = []
  readonly clock = new ManualClock()
  readonly breakers = new CircuitBreakers({ clock: this.clock, random: () => 0.5, log: () => {} })
  readonly statistics = new BackendStatistics(this.clock)
  readonly learned = new LearnedLimits(this.clock)
  readonly backends: readonly Backend[]
  /** Tokens of the current request, for backends whose context window is too small. */
  tokens = 0

  constructor(situations: readonly Situation[]) {
    this.backends = situations.map((situation, index) => this.#backend(`b${index}`, situation))
    this.breakers.hold(
      new Map(
        situations.flatMap(({ hold }, index) =>
          hold === undefined ? [] : [[`b${index}`, { kind: hold, sinceMs: 1 }]],
        ),
      ),
    )
    situations.forEach(({ seen }, index) => {
      const fail = (error: UpstreamError): void => failOnce(this.breakers, `b${index}`, error)
      if (seen === 'rate') fail(new UpstreamError('rate_limited', { retryAfterMs: 90_000 }))
      if (seen === 'credentials') fail(new UpstreamError('rejected_credentials'))
      if (seen === 'failing') for (let count = 0; count < 5; count++) fail(new UpstreamError('timeout'))
    })
  }

  #backend(id: string, { format, failureDomain, contextWindow, capabilities, isWell }: Situation): Backend {
    return {
      id,
      failureDomain,
      format,
      model: `model-${id}`,
      simulated: false,
      issuer: id,
      ...(contextWindow === undefined ? {} : { contextWindow }),
      ...(capabilities === undefined ? {} : { capabilities }),
      timeouts: { connectMs: 1e6, headersMs: 1e6, firstContentMs: 1e6, wholeAnswerMs: 1e6, idleMs: 1e6, totalMs: 5e6 },
      dialect: { maxTokensField: 'max_tokens', developerRole: true, streamUsage: true, refusedFields: [] },
      call: (_request, listener) => {
        this.asked.push(id)
        const isTooLong = contextWindow !== undefined && this.tokens > contextWindow
        queueMicrotask(() => {
          // A backend that answers fails after its first content, like a buggy provider: the test only needs the call.
          if (isTooLong) listener.onError(new UpstreamError('context_too_long'))
          else listener.onError(new UpstreamError(isWell ? 'rejected_content' : 'unreachable', { status: 422 }))
        })
        return { pause: () => {}, resume: () => {}, abort: () => {} }
      },
    }
  }

  plan(asked: RoutingQuestion, plan: Plan = premium, leftOut: readonly ExcludedBackend[] = []) {
    const parts = {
      profiles: [profile, fusion],
      backends: { forProfile: () => this.backends, stillServes: () => true },
      leftOut: () => Promise.resolve(leftOut),
      clock: this.clock,
      breakers: this.breakers,
      statistics: this.statistics,
      learned: this.learned,
      formats: formatById,
      relays: relayById,
    }
    return planRouting(parts, { accountId: 'acc_1', plan }, sampleRequest(asked))
  }

  /** Sends the planned request and returns the code of the error it ends with. */
  async send(asked: RoutingQuestion, plan: Plan = premium): Promise<string> {
    const { clock } = this
    const request = sampleRequest(asked)
    this.tokens = estimateTokens(formatById(asked.format).readRequest(request.body))
    const log = (): void => {}
    const keys = { find: () => Promise.resolve(undefined), revision: () => Promise.resolve(1) }
    const gateway = new Gateway({
      clock,
      randomBytes: (length) => new Uint8Array(length),
      log,
      breakers: this.breakers,
      statistics: this.statistics,
      learned: this.learned,
      links: linksFor('https://example.com'),
      authentication: {
        keys: new KeyCache(keys, clock, log, () => {}),
        digests: new DigestCache([]),
        planById: () => plan,
        findAccount: () => Promise.resolve(undefined),
        nowMs: () => clock.nowMs(),
      },
      profiles: [profile, fusion],
      backends: { forProfile: () => this.backends, stillServes: () => true },
      ledger: {
        admit: () => ({ signals: () => signals, durable: () => undefined, deliver: () => {}, settle: () => {} }),
        signals: () => signals,
      },
      formats: formatById,
      relays: relayById,
      mintId: () => 'x',
      keepAliveMs: 1e6,
    })
    try {
      const principal: Principal = {
        accountId: 'acc_1',
        keyId: 'key_1',
        plan,
        limits: undefined,
        recheck: () => principal,
      }
      await gateway.answer(principal, request, new FakeSink())
      return 'answered'
    } catch (error) {
      if (error instanceof ServiceError) return error.code
      throw error
    }
  }
}

const situations = fc.array(
  fc.record({
    format: fc.constantFrom(...formatIds),
    failureDomain: fc.constantFrom('d', 'e', 'f'),
    contextWindow: fc.constantFrom(undefined, undefined, 50, 500, 5_000),
    capabilities: fc.constantFrom(undefined, undefined, { image_input: false }, { image_input: true, tools: false }),
    hold: fc.constantFrom(undefined, undefined, undefined, 'drained' as const, 'quarantined' as const),
    seen: fc.constantFrom(...(['nothing', 'nothing', 'nothing', 'rate', 'credentials', 'failing'] as const)),
    isWell: fc.boolean(),
  }),
  { minLength: 1, maxLength: 7 },
)
const questions = fc.record({
  profile: fc.constant('p'),
  format: fc.constantFrom(...clientFormatIds),
  stream: fc.boolean(),
  images: fc.boolean(),
  tools: fc.boolean(),
  tokens: fc.constantFrom(10, 300, 2_000),
})

describe('a dry run', () => {
  test('it lists exactly the backends that the request then asks, in order, or the reason why there are none', async () => {
    await fc.assert(
      fc.asyncProperty(situations, questions, async (given, asked) => {
        const world = new World(given)
        const before = world.backends.map(({ id }) => world.breakers.condition(id))
        const plan = await world.plan(asked)
        expect(world.asked).toEqual([])
        expect(world.backends.map(({ id }) => world.breakers.condition(id))).toEqual(before)
        const planned = plan.asked.map(({ backend }) => backend)
        // Each backend of the profile is either asked or excluded with a reason.
        const named = [...planned, ...plan.leftOut.map(({ backend }) => backend)]
        if (plan.refusal === undefined) expect(named.toSorted()).toEqual(world.backends.map(({ id }) => id))
        const end = await world.send(asked)
        // No backend is asked for a capability that it declares unsupported.
        for (const id of world.asked) {
          const { capabilities } = given[Number(id.slice(1))]!
          if (asked.images) expect(capabilities?.image_input).not.toBe(false)
          if (asked.tools) expect(capabilities?.tools).not.toBe(false)
        }
        const firstWell = plan.asked.findIndex(
          ({ backend, doubts }) => given[Number(backend.slice(1))]!.isWell && !doubts.includes('window_small'),
        )
        expect(world.asked).toEqual(firstWell < 0 ? planned : planned.slice(0, firstWell + 1))
        if (plan.refusal !== undefined) expect(end).toBe(plan.refusal.code)
        else if (firstWell >= 0) expect(end).toBe('content_rejected')
      }),
      { numRuns: 400 },
    )
  })

  test('a plan without the profile, an unknown profile, and a request without backends are rejected as real requests are', async () => {
    const world = new World([well])
    expect((await world.plan({ ...question, profile: fusionId }, free)).refusal).toMatchObject({
      code: 'plan_required',
    })
    expect((await world.plan({ ...question, profile: 'q' })).refusal).toMatchObject({ code: 'model_not_found' })
    const none = new World([])
    const left = [{ backend: 'x', reason: 'another_account' }] as const
    expect(await none.plan(question, premium, left)).toEqual({
      profile: 'p',
      refusal: { code: 'no_provider_connected', param: undefined, words: { profile: 'p', next: 'See what to do' } },
      sort: 'order',
      panel: undefined,
      asked: [],
      leftOut: left,
    })
  })

  test('it reports which backends are excluded, until when, and whose context window is too small', async () => {
    const world = new World([
      { ...well, hold: 'drained' },
      { ...well, seen: 'rate' },
      { ...well, contextWindow: 100 },
      { ...well, contextWindow: 100 },
      { ...well, contextWindow: 90_000, failureDomain: 'e' },
    ])
    const plan = await world.plan({ ...question, tokens: 5_000 })
    expect(plan.asked.map(({ backend, doubts }) => [backend, ...doubts])).toEqual([['b4'], ['b2', 'window_small']])
    expect(plan.leftOut).toEqual([
      { backend: 'b0', reason: 'drained', untilMs: undefined },
      { backend: 'b1', reason: 'rate', untilMs: world.clock.nowMs() + 60_000 },
      { backend: 'b3', reason: 'window_small' },
    ])
  })

  test('for a fusion it lists the panel, without excluded backends', async () => {
    const world = new World([
      { ...well, hold: 'drained' },
      { ...well, failureDomain: 'e' },
      { ...well, failureDomain: 'f' },
    ])
    const { panel, refusal } = await world.plan({ ...question, profile: fusionId })
    expect(refusal).toBeUndefined()
    expect(new Set(panel?.asked)).toEqual(new Set(['b1', 'b2']))
    expect(panel?.writers).not.toContain('b0')
  })
})
