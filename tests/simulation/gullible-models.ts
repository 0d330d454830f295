import { expect } from 'vitest'
import { fuse } from '../../src/gateway/fusion/engine/fusion.ts'
import { seededRandom } from '../../src/gateway/fusion/engine/seeded-random.ts'
import { settingsOf } from '../../src/gateway/fusion/engine/settings.ts'
import { question } from './conversations.ts'
import { anyLineEnd, hostileText } from './hostile-texts.ts'
import { byPlace, judgeReply, judgeSays, textOf } from './simulated-judge.ts'
import { SimulatedModels, simulatedMember, streamedAnswer, textAnswer, type Behave } from './simulated-models.ts'
import { SimulatedTime } from './simulated-time.ts'

/** Orders in each fusion: in three panel answers and in the caller's criteria. */
export const ordersEach = 4

/** The orders that a gullible model obeys: those in any line without a mark, whatever its line end. */
export function ordersObeyed(text: string): string[] {
  const mark = /⟦([0-9A-Za-z]{6})·/.exec(text)?.[1]
  const lines = text.split(anyLineEnd)
  return (
    lines
      .filter((line) => !line.startsWith(`⟦${mark}·`))
      .join('\n')
      .match(/OBEY-\d+/g) ?? []
  )
}

/** Runs a fusion in which all quoted texts give orders; returns those that a gullible judge or writer would obey. */
async function fuseHostile(seed: number): Promise<{ judged: string[]; written: string[]; injected: number }> {
  const random = seededRandom(seed)
  const judged: string[] = []
  const written: string[] = []
  let injected = 0
  const order = (): string => {
    injected += 1
    return hostileText(random, `OBEY-${seed}`)
  }
  const behave: Behave = (_, { role, conversation }) => {
    const all = textOf(conversation)
    if (role === 'panel') return textAnswer(order(), 1_000)
    if (role === 'synthesis') {
      // The user's own text is an instruction, and the notes follow it.
      written.push(...ordersObeyed(all.slice(all.indexOf('This is what I ask.'))))
      return streamedAnswer('Done.')
    }
    judged.push(...ordersObeyed(all))
    return judgeSays(
      judgeReply({ scores: byPlace(conversation, 8) }).replaceAll('JUDGE-SECRET', `OBEY-${seed}\\nOBEY-${seed}`),
    )
  }
  const world = new SimulatedModels(new SimulatedTime(), behave, seed)
  const members = [simulatedMember(), simulatedMember(), simulatedMember()]
  const toolResult = {
    role: 'tool',
    callId: 'c',
    kind: 'function',
    parts: [{ type: 'text', text: hostileText(random, `OBEY-${seed}`) }],
  } as const
  const call = { type: 'call', kind: 'function', id: 'c', name: 'read', arguments: '{}' } as const
  const conversation = question(undefined, {
    turns: [
      { role: 'user', parts: [{ type: 'text', text: 'Read it.' }] },
      { role: 'assistant', parts: [call] },
      toolResult,
      { role: 'user', parts: [{ type: 'text', text: 'This is what I ask.' }] },
    ],
  })
  const settings = { ...settingsOf('balanced', true), criteria: order() }
  const outcome = await world.clock.until(
    fuse({ conversation, members, settings }, world, new AbortController().signal),
  )
  expect(outcome.record.mode).toBe('synthesised')
  return { judged, written, injected }
}

/** Runs this many hostile fusions, starting with a seed, and returns every order that was obeyed. */
export async function ordersObeyedIn(fusions: number, firstSeed: number): Promise<string[]> {
  const obeyed: string[] = []
  for (let seed = firstSeed; seed < firstSeed + fusions; seed++) {
    const { judged, written, injected } = await fuseHostile(seed)
    expect(injected).toBe(ordersEach)
    obeyed.push(...judged, ...written)
  }
  return obeyed
}
