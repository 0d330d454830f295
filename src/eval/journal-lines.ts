import type { AnswerEvent, JsonObject } from '../domain/conversation.ts'
import { isObject, objectOf, parseObject } from '../domain/json.ts'
import { fusionPresetNames, type PresetName } from '../domain/fusion-presets.ts'
import type { AnsweredCall, Journal, Kept } from './ports.ts'
import { questionSetVersion } from './questions/question-set.ts'

const fileVersion = 1

/** What an evaluation is, so that a file is gone on with as what it was begun as. Ids and models; nothing secret. */
export interface EvaluationHead {
  readonly seed: number
  readonly items: number
  readonly preset: PresetName
  readonly members: readonly { readonly id: string; readonly model: string }[]
}

/** The first line of a file. */
export function writeHead(head: EvaluationHead): string {
  return JSON.stringify({ svcRouterEval: fileVersion, questionSet: questionSetVersion, ...head })
}

/** A journal of lines: each is given to `append` as it comes. */
export function journalOf(append: (line: string) => void): Journal {
  return {
    began: (key, worstUsd) => append(JSON.stringify({ began: key, usd: worstUsd })),
    answered: ({ key, events, ms, usd }) => append(JSON.stringify({ answered: key, events, ms, usd })),
    failed: (key, usd) => append(JSON.stringify({ failed: key, usd })),
    choseBest: (memberId) => append(JSON.stringify({ best: memberId })),
  }
}

/**
 * What a file holds, or why it cannot be gone on with. A last line without its end was cut off and is passed over; any
 * other that cannot be read is named: nobody knows what was paid for it.
 */
export function readJournal(
  text: string,
): { readonly head: EvaluationHead; readonly kept: Kept } | { readonly problem: string } {
  const [first = '', ...lines] = text.split('\n')
  lines.pop()
  const head = parseObject(first)
  if (head?.['svcRouterEval'] !== fileVersion) return { problem: 'it is not a file of an evaluation' }
  if (head['questionSet'] !== questionSetVersion) return { problem: 'its questions are those of another version' }
  const begun = readHead(head)
  if (begun === undefined) return { problem: 'its line 1 cannot be read' }
  const answered = new Map<string, AnsweredCall>()
  const open = new Map<string, number[]>()
  let spentUsd = 0
  let best: string | undefined
  for (const [index, line] of lines.entries()) {
    if (line === '') continue
    const { best: chosen, began, failed, answered: key, events, ms, usd } = parseObject(line) ?? {}
    if (typeof chosen === 'string') {
      best = chosen
    } else if (typeof began === 'string' && typeof usd === 'number') {
      open.set(began, [...(open.get(began) ?? []), usd])
    } else if (typeof failed === 'string' && typeof usd === 'number') {
      open.get(failed)?.shift()
      spentUsd += usd
    } else if (typeof key === 'string' && typeof usd === 'number' && typeof ms === 'number' && areEvents(events)) {
      open.get(key)?.shift()
      spentUsd += usd
      answered.set(key, { key, events, ms, usd })
    } else {
      // The head is the first.
      return { problem: `its line ${index + 2} cannot be read` }
    }
  }
  // Calls whose end nobody knows: whoever was hung up on may have billed all of it.
  for (const worst of open.values()) for (const usd of worst) spentUsd += usd
  const kept: Kept = { answered, spentUsd, ...(best === undefined ? {} : { best }) }
  return { head: begun, kept }
}

function readHead({ seed, items, preset, members }: JsonObject): EvaluationHead | undefined {
  const known = fusionPresetNames.find((name) => name === preset)
  if (typeof seed !== 'number' || typeof items !== 'number' || known === undefined) return undefined
  const list: readonly unknown[] = Array.isArray(members) ? members : []
  const named = list.map(objectOf).flatMap(({ id, model }) => {
    return typeof id === 'string' && typeof model === 'string' ? [{ id, model }] : []
  })
  return named.length === 0 ? undefined : { seed, items, preset: known, members: named }
}

function areEvents(value: unknown): value is readonly AnswerEvent[] {
  return Array.isArray(value) && value.every(isObject)
}
