import type { AnswerEvent } from '../domain/conversation.ts'
import { type JsonObject, isObject, objectOf, parseObject } from '../domain/json.ts'
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
  const reading = new JournalReading()
  const unread = lines.findIndex((line) => line !== '' && !reading.take(parseObject(line) ?? {}))
  // The head is the first.
  if (unread >= 0) return { problem: `its line ${unread + 2} cannot be read` }
  return { head: begun, kept: reading.kept }
}

/** What the lines of a journal come to. */
class JournalReading {
  readonly #answered = new Map<string, AnsweredCall>()
  /** Calls that were begun and have not ended, by key: the worst case of each. */
  readonly #open = new Map<string, number[]>()
  #spentUsd = 0
  #best: string | undefined

  /** Gives whether the line says something. */
  take({ best, began, failed, answered: key, events, ms, usd }: JsonObject): boolean {
    if (typeof best === 'string') {
      this.#best = best
      return true
    }
    if (typeof usd !== 'number') return false
    if (typeof began === 'string') {
      this.#open.set(began, [...(this.#open.get(began) ?? []), usd])
      return true
    }
    if (typeof failed === 'string') {
      this.#end(failed, usd)
      return true
    }
    if (typeof key !== 'string' || typeof ms !== 'number' || !areEvents(events)) return false
    this.#end(key, usd)
    this.#answered.set(key, { key, events, ms, usd })
    return true
  }

  get kept(): Kept {
    // Calls whose end nobody knows: whoever was hung up on may have billed all of it.
    const worstUsd = [...this.#open.values()].flat().reduce((sum, usd) => sum + usd, 0)
    const best = this.#best === undefined ? {} : { best: this.#best }
    return { answered: this.#answered, spentUsd: this.#spentUsd + worstUsd, ...best }
  }

  #end(key: string, usd: number): void {
    this.#open.get(key)?.shift()
    this.#spentUsd += usd
  }
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
