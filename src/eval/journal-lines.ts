import type { AnswerEvent } from '../domain/conversation.ts'
import { fusionPresetNames, type PresetName } from '../domain/fusion-presets.ts'
import { type JsonObject, isObject, objectOf, parseObject } from '../domain/json.ts'
import type { AnsweredCall, Journal, Kept } from './ports.ts'
import { questionSetVersion } from './questions/question-set.ts'

const fileVersion = 1

/**
 * Identifies an evaluation, so that a file is only continued as what it was started as. Contains ids and models, no
 * secrets.
 */
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

/** A journal that passes each line to `append`. */
export function journalOf(append: (line: string) => void): Journal {
  return {
    began: (key, worstUsd) => append(JSON.stringify({ began: key, usd: worstUsd })),
    answered: ({ key, events, ms, usd }) => append(JSON.stringify({ answered: key, events, ms, usd })),
    failed: (key, usd) => append(JSON.stringify({ failed: key, usd })),
    choseBest: (memberId) => append(JSON.stringify({ best: memberId })),
  }
}

/**
 * Parses a file, or says why it cannot be continued. An incomplete last line was cut off and is ignored. Any other
 * invalid line is an error, because it may have recorded a cost.
 */
export function readJournal(
  text: string,
): { readonly head: EvaluationHead; readonly kept: Kept } | { readonly problem: string } {
  const [first = '', ...lines] = text.split('\n')
  lines.pop()
  const head = parseObject(first)
  if (head?.['svcRouterEval'] !== fileVersion) return { problem: 'it is not an evaluation file' }
  if (head['questionSet'] !== questionSetVersion)
    return { problem: 'its questions come from another version of svc-router' }
  const begun = readHead(head)
  if (begun === undefined) return { problem: 'its line 1 cannot be read' }
  const reading = new JournalReading()
  const unread = lines.findIndex((line) => line !== '' && !reading.take(parseObject(line) ?? {}))
  // Line 1 is the head.
  if (unread >= 0) return { problem: `its line ${unread + 2} cannot be read` }
  return { head: begun, kept: reading.kept }
}

/** The state that the lines of a journal add up to. */
class JournalReading {
  readonly #answered = new Map<string, AnsweredCall>()
  /** Calls that started and have not ended, by key: the worst-case cost of each. */
  readonly #open = new Map<string, number[]>()
  #spentUsd = 0
  #best: string | undefined

  /** Returns whether the line is valid. */
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
    // Calls without a recorded end. Their providers may have billed all of the worst case.
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
