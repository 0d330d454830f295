import { inspect } from 'node:util'
import { frontierId } from '../../../src/domain/profiles.ts'
import { Dice } from '../dice.ts'
import type { Exchange } from './client.ts'
import { type AtRest, type Evidence, evidenceOf, type Invariant } from './evidence.ts'
import { accessInvariants } from './invariants/access.ts'
import { answerInvariants } from './invariants/answers.ts'
import { generationInvariants } from './invariants/generations.ts'
import { ledgerInvariants } from './invariants/ledger.ts'
import { restInvariants } from './invariants/rest.ts'
import { type Schedule, scheduleOf } from './schedule.ts'
import { type Template, worldTemplate } from './template.ts'
import { World } from './world.ts'

const invariants: readonly Invariant[] = [
  ...ledgerInvariants,
  ...answerInvariants,
  ...generationInvariants,
  ...accessInvariants,
  ...restInvariants,
]

/** How long the service is left alone before it is measured at rest: mostly short, because every poll costs time. */
const restMs = [500, 500, 3_000] as const
/** The longest that a slow disk takes for a statement that it began before the faults ended. */
const slowestWriteMs = 10_000
/** The longest that clients come back after the faults, and answers are generated without a client. */
const longestReturnMs = 260_000

export interface Violation {
  readonly id: string
  readonly sentence: string
  readonly what: string
}

/** Carries out the schedule of one seed, and judges it. `note` takes the trace of events. */
export async function runSchedule(
  seed: number,
  note?: (line: string) => void,
): Promise<{ readonly violations: readonly Violation[]; readonly world: World }> {
  const template = await worldTemplate()
  const schedule = scheduleOf(seed, new Dice(seed ^ 0x5eed))
  const world = new World(template, schedule, note)
  try {
    await world.run(schedule)
    const evidence = await gather(world, template, schedule)
    const violations = invariants.flatMap((invariant) => [...violationsOf(invariant, evidence)])
    return { violations, world }
  } finally {
    world.service?.kill()
  }
}

function* violationsOf({ id, sentence, check }: Invariant, evidence: Evidence): Iterable<Violation> {
  for (const what of check(evidence)) yield { id, sentence, what }
}

async function gather(world: World, template: Template, { asksAtEnd }: Schedule): Promise<Evidence> {
  const finalExchange = asksAtEnd ? await askAtTheEnd(world, template) : undefined
  // Clients that were told to wait come back, and an answer to a named request is generated for its retries, although its
  // client left (contract 39.10).
  const isOver = (): boolean => world.openExchanges === 0 && world.service?.api.openRequests === 0
  await world.timeline.runUntil(world.timeline.nowMs + longestReturnMs, isOver)
  const { ledger, storage } = world.service!
  const isWritten = (): boolean => ledger.inFlight === 0 && storage.queues()['database'] === 0
  await world.timeline.runUntil(world.timeline.nowMs + slowestWriteMs, isWritten)
  await world.timeline.runUntil(world.timeline.nowMs + world.dice.pick(restMs))
  const atRest = await measure(world, template)
  await world.stop()
  return evidenceOf(world, atRest, finalExchange)
}

/** One account asks once more; undefined if every key of it was revoked. */
async function askAtTheEnd(world: World, template: Template): Promise<Exchange | undefined> {
  const account = world.dice.upTo(template.accounts.length - 1)
  const revoked = world.changes.flatMap(({ action }) =>
    action.do === 'revoke' && action.account === account ? [action.key] : [],
  )
  const key = template.accounts[account]!.keys.find((_, index) => !revoked.includes(index))
  if (key === undefined) return undefined
  return world.askUntilAnswered({
    account,
    key: key.key,
    format: 'openai-chat',
    stream: true,
    profile: frontierId,
    leavesAfterMs: undefined,
    leavesAfterBytes: undefined,
    msPerByte: undefined,
    sendsSlowlyMs: undefined,
    isNamed: false,
    againAfterMs: undefined,
  })
}

async function measure(world: World, { accounts, config }: Template): Promise<AtRest> {
  const { api, ledger, providers, storage } = world.service!
  const used = new Map<string, { used: number; resetAt: number }>()
  for (const { id } of accounts) {
    // A plan without limits shows everything that is counted.
    const plan = { ...config.plans[0]!, requestsPerMonth: 1_000_000 }
    let signals: Awaited<ReturnType<typeof ledger.signals>> | undefined
    Promise.resolve(ledger.signals(id, plan)).then(
      (read) => (signals = read),
      // Judged by what is missing then.
      () => {},
    )
    await world.timeline.runUntil(world.timeline.nowMs + 10_000, () => signals !== undefined)
    used.set(id, { used: signals?.quotaUsed ?? -1, resetAt: signals?.quotaReset ?? 0 })
  }
  // The key cache asks four times a second.
  await world.timeline.runUntil(world.timeline.nowMs + 1_000, () => storage.queues()['database'] === 0)
  const { connections, places, waiting } = providers.connections()
  return {
    openRequests: api.openRequests,
    inFlight: ledger.inFlight,
    waitingForConnection: waiting,
    lostPlaces: places - connections,
    waitingCalls: storage.queues()['database']!,
    heldShares: Object.entries(api.shares).flatMap(([name, share]) => (share.used > 0 ? [name] : [])),
    used,
  }
}

/** Failures that one run reports. */
const mostFailures = 3

/** Runs schedules, one per seed, and describes the first ones that broke something. */
export async function findFailures(firstSeed: number, schedules: number): Promise<readonly string[]> {
  const failures: string[] = []
  for (let seed = firstSeed; seed < firstSeed + schedules && failures.length < mostFailures; seed++) {
    try {
      const { violations } = await runSchedule(seed)
      if (violations.length > 0) failures.push(describeViolations(seed, violations))
    } catch (error) {
      failures.push(`The schedule of seed ${seed} failed: ${inspect(error)}\n${describeReplay(seed)}`)
    }
  }
  return failures
}

/** Describes what a seed broke, and the one command that replays it with its trace. */
export function describeViolations(seed: number, violations: readonly Violation[]): string {
  const lines = violations.map(({ id, sentence, what }) => `  ${id} ${sentence}\n     ${what}`)
  return [`The schedule of seed ${seed} broke:`, ...lines, describeReplay(seed)].join('\n')
}

function describeReplay(seed: number): string {
  return `Replay it with its trace of events:\n  node bin/run.mjs node tests/simulation/service/replay.ts ${seed}`
}
