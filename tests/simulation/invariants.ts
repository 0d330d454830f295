import { expect } from 'vitest'
import type { AnswerEvent, Usage } from '../../src/domain/conversation.ts'
import type { FusionOutcome } from '../../src/gateway/fusion/engine/outcome.ts'
import { judgeSecret } from './simulated-judge.ts'
import type { SimulatedModels } from './simulated-models.ts'

/** Texts that may never reach the caller: members' names, prompts, and the judge's output. */
const secrets = new RegExp(
  [
    '-private-',
    judgeSecret,
    '⟦',
    '⟧',
    'candidate',
    'injection',
    'fusion-',
    'as if no other answer',
    'reference notes',
    'Earlier attempts',
  ].join('|'),
  'i',
)

/** Asserts the invariants of every fusion; returns the emitted text. */
export async function expectSound(world: SimulatedModels, outcome: FusionOutcome): Promise<string> {
  const { emitted, clock } = world
  const { record, usage, error, isClientDisconnected } = outcome
  expect(emitted[0]?.type ?? 'start').toBe('start')
  const finishes = emitted.filter(({ type }) => type === 'finish').length
  const isWhole = error === undefined && !isClientDisconnected
  expect(finishes).toBe(isWhole ? 1 : 0)
  if (isWhole) {
    expect(emitted.at(-1)?.type).toBe('finish')
    const emittedUsage = emitted.findLast((event) => event.type === 'usage')!.usage
    const { parts = [], ...whole } = emittedUsage
    expect(whole).toEqual(usage)
    // The caller's usage breakdown is consistent, has every call, and names no model.
    expect(sum(parts)).toEqual(usage)
    expect(parts.map(({ role, status, ms }) => ({ role, status, ms }))).toEqual(
      record.calls.map(({ role, status, ms }) => ({ role, status, ms })),
    )
  }
  expect(order(emitted)).toMatch(/^s?(r+(e|$))?[tfcax]*(ud)?$/)
  expect(sum(record.calls.flatMap((call) => (call.usage === undefined ? [] : [call.usage])))).toEqual(usage)
  const counted = record.calls.flatMap((call) => (call.usage?.source === 'counted' ? [call.usage] : []))
  const reported = world.seen.flatMap((call) => (call.usage === undefined ? [] : [call.usage]))
  expect(sum(counted)).toEqual(sum(reported))
  expect(record.calls.length).toBe(world.seen.length)
  expect(secrets.exec(JSON.stringify(emitted))?.[0]).toBeUndefined()
  // No call and no timer of ours is left.
  expect(world.open).toBe(0)
  await clock.drain()
  expect(clock.waiting).toBe(0)
  return emitted.map((event) => (event.type === 'text' ? event.text : '')).join('')
}

const letters: Readonly<Record<AnswerEvent['type'], string>> = {
  start: 's',
  reasoning: 'r',
  reasoning_end: 'e',
  text: 't',
  refusal: 'f',
  call: 'c',
  call_arguments: 'a',
  annotation: 'x',
  service_call: 'i',
  report: 'i',
  usage: 'u',
  finish: 'd',
}

function order(events: readonly AnswerEvent[]): string {
  return events.map(({ type }) => letters[type]).join('')
}

function sum(all: readonly Usage[]): Usage {
  const total = { inputTokens: 0, outputTokens: 0, cachedTokens: 0, reasoningTokens: 0 }
  for (const usage of all) {
    total.inputTokens += usage.inputTokens
    total.outputTokens += usage.outputTokens
    total.cachedTokens += usage.cachedTokens
    total.reasoningTokens += usage.reasoningTokens
  }
  return { ...total, source: all.some(({ source }) => source === 'estimated') ? 'estimated' : 'counted' }
}
