import { expect } from 'vitest'
import type { AnswerEvent, Conversation } from '../../src/domain/conversation.ts'
import { operatorsPrice } from '../../src/domain/model-price.ts'
import type { AttemptOutcome } from '../../src/domain/upstream.ts'
import { fuse } from '../../src/gateway/fusion/engine/fusion.ts'
import type { FusionOutcome } from '../../src/gateway/fusion/engine/outcome.ts'
import type { FusionMember } from '../../src/gateway/fusion/engine/ports.ts'
import { settingsOf, type FusionSettings } from '../../src/gateway/fusion/engine/settings.ts'
import { question } from './conversations.ts'
import { Dice } from './dice.ts'
import { expectSound } from './invariants.ts'
import { candidatesIn, judgeReply, judgeSays, judgeSecret, textOf } from './simulated-judge.ts'
import {
  SimulatedModels,
  streamedAnswer,
  textAnswer,
  usageOf,
  type Behave,
  type Behaviour,
  type Step,
} from './simulated-models.ts'
import { SimulatedTime } from './simulated-time.ts'

/** The outcomes of many random fusions: the count of each mode or error. */
export type Tally = Map<string, number>

const failures: readonly Exclude<AttemptOutcome, 'answered'>[] = [
  'rejected_credentials',
  'rejected_content',
  'context_too_long',
  'rate_limited',
  'server_error',
  'unreachable',
  'reset',
  'timeout',
  'broken',
]

/** Runs this many random fusions, each with its own seed, and asserts their invariants. */
export async function runRandomFusions(count: number, firstSeed: number): Promise<Tally> {
  const tally: Tally = new Map()
  for (let seed = firstSeed; seed < firstSeed + count; seed++) {
    try {
      const name = await runOne(seed)
      tally.set(name, (tally.get(name) ?? 0) + 1)
    } catch (error) {
      throw new Error(`the fusion of seed ${seed} failed`, { cause: error })
    }
  }
  return tally
}

async function runOne(seed: number): Promise<string> {
  const dice = new Dice(seed)
  const members = Array.from({ length: 1 + dice.upTo(7) }, (_, index) => randomMember(dice, index))
  const trouble = dice.pick([0, 0.1, 0.4, 0.8, 1])
  const conversation = randomConversation(dice)
  const settings = randomSettings(dice, conversation.stream)
  const world = new SimulatedModels(new SimulatedTime(), randomBehaviour(dice, trouble), seed)
  const caller = new AbortController()
  const leavesAfterMs = dice.chance(0.1) ? dice.ms(15_000) : undefined
  let leftAtMs: number | undefined
  if (leavesAfterMs !== undefined)
    world.clock.after(leavesAfterMs, () => {
      leftAtMs = world.clock.nowMs()
      caller.abort()
    })
  if (dice.chance(0.1)) world.onEmit = slowReader(dice, world, caller.signal)
  const outcome = await world.clock.until(fuse({ conversation, members, settings }, world, caller.signal))
  const endedMs = world.clock.nowMs()
  const text = await expectSound(world, outcome)
  const isGone = leftAtMs !== undefined && leftAtMs <= endedMs && outcome.isClientDisconnected
  if (isGone) {
    // Everything is closed within 100 ms after the client disconnects, and nothing starts afterwards.
    for (const { startedMs, closedMs } of world.seen) {
      expect(startedMs).toBeLessThanOrEqual(leftAtMs!)
      expect(closedMs! - leftAtMs!).toBeLessThanOrEqual(100)
    }
    expect(endedMs - leftAtMs!).toBeLessThanOrEqual(100)
    return 'left'
  }
  expectAnswered(world, outcome, text, conversation)
  expectBounded(world, outcome, settings, conversation.stream && conversation.outputFormat === undefined)
  return outcome.error?.code ?? outcome.record.mode!
}

/** If any member answered in time, the caller gets an answer; it is broken only if a streaming writer failed. */
function expectAnswered(world: SimulatedModels, outcome: FusionOutcome, text: string, { stream }: Conversation): void {
  const { error, record } = outcome
  const roles = new Set(['panel', 'refill', 'hedge'])
  const delivered = world.seen.some(
    ({ call, isDelivered, usage }) => isDelivered && usage !== undefined && roles.has(call.role),
  )
  if (delivered) expect(record.answered + Number(record.mode === 'refused')).toBeGreaterThan(0)
  const hasSaid = world.emitted.some(({ type }) => type === 'text' || type === 'refusal' || type === 'call')
  if (error === undefined) {
    expect(hasSaid).toBe(true)
    expect(record.mode).toBeDefined()
  } else if (error.code === 'upstream_broken') {
    expect(stream).toBe(true)
    expect(hasSaid).toBe(true)
  } else {
    expect(delivered, 'an answer was there').toBe(false)
    expect(text).toBe('')
  }
}

function expectBounded(
  world: SimulatedModels,
  { record }: FusionOutcome,
  settings: FusionSettings,
  isLive: boolean,
): void {
  const { firstEmitMs, firstContentMs } = world
  if (firstContentMs !== undefined) expect(firstContentMs - firstEmitMs!).toBeLessThanOrEqual(settings.totalMs)
  // An answer that is streaming is not aborted, and a slow reader is waited for: that time belongs to the delivery.
  if (world.onEmit === undefined && (!isLive || firstContentMs === undefined))
    expect(record.totalMs).toBeLessThanOrEqual(settings.totalMs)
  expect(record.totalMs).toBeLessThanOrEqual(600_000)
  // If no member has answered at the panel's limit, the panel waits for the first answer, up to this share of the
  // total.
  expect(record.panelMs).toBeLessThanOrEqual(Math.max(settings.panelMs, 0.7 * settings.totalMs))
  const panelCalls = record.calls.filter(({ role }) => role === 'panel' || role === 'refill' || role === 'hedge').length
  expect(panelCalls).toBeLessThanOrEqual(2 * record.asked)
  expect(record.calls.length).toBeLessThanOrEqual(2 * record.asked + 9)
  if (settings.maxCostUsd !== undefined) expect(record.costUsd ?? 0).toBeLessThanOrEqual(settings.maxCostUsd)
}

function randomMember(dice: Dice, index: number): FusionMember {
  return {
    id: `id-private-${index}`,
    model: `model-private-${dice.upTo(5)}`,
    family: `family-private-${dice.upTo(4)}`,
    failureDomain: `domain-private-${dice.upTo(4)}`,
    quality: dice.pick([80, 80, 78, 60]),
    capabilities: { reasoning: dice.chance(0.3), structured_outputs: dice.chance(0.5) },
    price: operatorsPrice({ input: 3, output: 15 }),
    ...(dice.chance(0.5) ? { slowAfterMs: dice.ms(8_000) } : {}),
    ...(dice.chance(0.1) ? { contextWindow: 2_000 + dice.upTo(10_000) } : {}),
  }
}

function randomConversation(dice: Dice): Conversation {
  const call = { type: 'call', kind: 'function', id: 'call_1', name: 'look', arguments: '{}' } as const
  const past = [
    { role: 'user', parts: [{ type: 'text', text: 'Look first.' }] },
    { role: 'assistant', parts: [call] },
    { role: 'tool', callId: 'call_1', kind: 'function', parts: [{ type: 'text', text: 'seen' }] },
    { role: 'assistant', parts: [{ type: 'text', text: 'I have looked.' }] },
  ] as const
  const last = { role: 'user', parts: [{ type: 'text', text: 'And now?' }] } as const
  return question(undefined, {
    stream: dice.chance(0.6),
    turns: dice.chance(0.2) ? [...past, last] : [last],
    ...(dice.chance(0.15) ? { tools: [{ type: 'function', name: 'look', description: 'Looks.' }] } : {}),
    ...(dice.chance(0.1) ? { outputFormat: { type: 'json_object' } } : {}),
    ...(dice.chance(0.2) ? { sampling: { maxOutputTokens: 100 + dice.upTo(2_000) } } : {}),
  })
}

function randomSettings(dice: Dice, stream: boolean): FusionSettings {
  const settings = settingsOf(dice.pick(['fast', 'balanced', 'quality']), stream)
  const panelSize = dice.chance(0.5) ? settings.panelSize : 1 + dice.upTo(7)
  return {
    ...settings,
    panelSize,
    ...(dice.chance(0.2) ? { quorum: 1 + dice.upTo(panelSize - 1) } : {}),
    ...(dice.chance(0.15) ? { maxCostUsd: dice.number() * 1.5 } : {}),
    ...(dice.chance(0.3) ? { seed: dice.upTo(1_000) } : {}),
    ...(dice.chance(0.2) ? { criteria: 'Short and right.' } : {}),
    streamsProgress: dice.chance(0.8),
  }
}

function randomBehaviour(dice: Dice, trouble: number): Behave {
  return (_, { role, conversation }) => {
    const isDeaf = dice.chance(0.03)
    if (dice.chance(trouble)) return { ...randomTrouble(dice), isDeaf }
    if (role === 'judge' || role === 'swap' || role === 'repair') {
      return { ...judgeSays(randomReply(dice, conversation, trouble), dice.ms(3_000)), isDeaf }
    }
    const text =
      conversation.outputFormat === undefined
        ? `The answer is ${dice.upTo(3)}.`
        : `{"answer": ${dice.upTo(2)}, "sure": true}`
    const usage = usageOf(dice.upTo(500), dice.upTo(100))
    if (conversation.stream) {
      const { steps } = streamedAnswer(text, dice.ms(40), usage)
      return { steps: role === 'synthesis' ? [...indiscretions(dice, conversation), ...steps] : steps, isDeaf }
    }
    return { ...textAnswer(text, dice.ms(9_000), usage), isDeaf }
  }
}

/** What a writer leaks of its notes before it starts: in its reasoning, or by repeating a quoted line's mark. */
function indiscretions(dice: Dice, conversation: Conversation): Step[] {
  const afterMs = dice.ms(100)
  const [mark] = /⟦\w{6}·\w+⟧ /.exec(textOf(conversation)) ?? []
  const steps: Step[] = []
  if (dice.chance(0.3))
    steps.push({ afterMs, events: [{ type: 'reasoning', text: `${judgeSecret}: candidate A is right` }] })
  if (dice.chance(0.1) && mark !== undefined) {
    const cut = dice.upTo(mark.length)
    const pieces = [mark.slice(0, cut), mark.slice(cut)]
    steps.push(...pieces.map((text): Step => ({ afterMs, events: [{ type: 'text', text }] })))
  }
  return steps
}

function randomReply(dice: Dice, conversation: Conversation, trouble: number): string {
  if (dice.chance(trouble))
    return dice.pick([judgeSecret, `{"scores": {"A": ${judgeSecret}`, '{}', '[]', '{"verdict":"adopt"}'])
  const labels = candidatesIn(conversation).map(({ label }) => label)
  const json = judgeReply({
    answerType: dice.pick(['open', 'closed', 'code', 'structured', 'action']),
    verdict: dice.pick(['adopt', 'synthesize', 'insufficient']),
    scores: Object.fromEntries(labels.map((label) => [label, dice.upTo(10)])),
    flags: labels.filter(() => dice.chance(0.05)),
    isMaterial: dice.chance(0.5),
  })
  return dice.pick([json, `\`\`\`json\n${json}\n\`\`\``, `Here it is: ${json} Done.`])
}

function randomTrouble(dice: Dice): Behaviour {
  const afterMs = dice.ms(2_000)
  const start: AnswerEvent = { type: 'start' }
  const finish: AnswerEvent = { type: 'finish', reason: 'stop' }
  return dice.pick<Behaviour>([
    { steps: [{ afterMs, fails: dice.pick(failures) }] },
    { steps: [{ afterMs, fails: dice.pick(failures) }] },
    { steps: [], hangs: true },
    { steps: [{ afterMs, events: [start] }], hangs: true },
    { steps: [{ afterMs, events: [start, { type: 'text', text: 'Half of it' }] }] },
    { steps: [{ afterMs, events: [{ type: 'text', text: 'Some ' }] }], hangs: true },
    {
      steps: [
        { afterMs, events: [{ type: 'text', text: 'Some ' }] },
        { afterMs, fails: dice.pick(failures) },
      ],
    },
    { steps: [{ afterMs, events: [start, finish] }] },
    { steps: [{ afterMs, events: [{ type: 'refusal', text: 'I would rather not.' }, finish] }] },
    { steps: [{ afterMs, events: [{ type: 'text', text: ' \n ' }, finish] }] },
    { steps: [{ afterMs, events: [{ type: 'text', text: 'All of it.' }, finish] }], hangs: true },
  ])
}

/** A reader that is sometimes slow, and stops when the client disconnects. */
function slowReader(dice: Dice, { clock }: SimulatedModels, signal: AbortSignal): () => Promise<void> | undefined {
  return () => {
    if (!dice.chance(0.3) || signal.aborted) return undefined
    return new Promise((resolve) => {
      clock.after(dice.ms(500), resolve)
    })
  }
}
