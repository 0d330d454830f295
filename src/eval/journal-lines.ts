import type { AnswerEvent } from '../domain/conversation.ts'
import { isObject, parseObject } from '../domain/json.ts'
import type { PresetName } from '../domain/fusion-presets.ts'
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

/** What a file holds, or why it cannot be gone on with. A last line that was cut off is passed over. */
export function readJournal(
  text: string,
): { readonly head: EvaluationHead; readonly kept: Kept } | { readonly problem: string } {
  const [first = '', ...lines] = text.split('\n')
  const head = parseObject(first)
  if (head?.['svcRouterEval'] !== fileVersion) return { problem: 'it is not a file of an evaluation' }
  if (head['questionSet'] !== questionSetVersion) return { problem: 'its questions are those of another version' }
  const answered = new Map<string, AnsweredCall>()
  const open = new Map<string, number[]>()
  let spentUsd = 0
  let best: string | undefined
  for (const line of lines) {
    const entry = parseObject(line)
    if (entry === undefined) continue
    const { began, failed, answered: key, events, ms, usd } = entry
    if (typeof entry['best'] === 'string') best = entry['best']
    if (typeof usd !== 'number') continue
    if (typeof began === 'string') {
      open.set(began, [...(open.get(began) ?? []), usd])
    } else if (typeof failed === 'string') {
      open.get(failed)?.shift()
      spentUsd += usd
    } else if (typeof key === 'string' && typeof ms === 'number' && Array.isArray(events)) {
      open.get(key)?.shift()
      spentUsd += usd
      const said = events.filter(isObject) as unknown as readonly AnswerEvent[]
      answered.set(key, { key, events: said, ms, usd })
    }
  }
  // Calls whose end nobody knows: whoever was hung up on may have billed all of it.
  for (const worst of open.values()) for (const usd of worst) spentUsd += usd
  const { seed, items, preset, members } = head as unknown as EvaluationHead
  const kept: Kept = { answered, spentUsd, ...(best === undefined ? {} : { best }) }
  return { head: { seed, items, preset, members }, kept }
}
