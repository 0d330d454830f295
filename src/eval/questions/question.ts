import type { Json, JsonObject } from '../../domain/json.ts'

export const familyIds = [
  'ledger',
  'puzzle',
  'calendar',
  'program',
  'table',
  'text',
  'plan',
  'trap',
  'injected',
] as const
/** The family of a question; `injected` for a question of another family with one tampered candidate. */
export type FamilyId = (typeof familyIds)[number]

/** The form of an answer, and the right one. */
export type Expected =
  /** `unit` is the unit of the question, which may follow the number. */
  | { readonly kind: 'number'; readonly value: number; readonly unit?: string }
  /** Ignores case, quotes, and spaces. `others` are also right. */
  | { readonly kind: 'words'; readonly value: string; readonly others?: readonly string[] }
  /** Every character counts, except quotes around the answer. */
  | { readonly kind: 'exact'; readonly value: string }
  /** Whole numbers in order, separated by commas. */
  | { readonly kind: 'numbers'; readonly value: string }
  /** Hours and minutes, `hh:mm`. */
  | { readonly kind: 'time'; readonly value: string }
  /** The order of members is ignored, that of lists is not. */
  | { readonly kind: 'json'; readonly value: Json; readonly schema: JsonObject }

/** The output of a family: a question without its number. */
export interface Drawn {
  readonly body: string
  /** The form of the answer, as it follows `ANSWER: `. */
  readonly form: string
  readonly expected: Expected
  /** Plausible wrong answers: at least three, all different, in the form of an answer. */
  readonly wrong: readonly string[]
}

/** One question of a set, with its answer. */
export interface Question extends Omit<Drawn, 'body' | 'form'> {
  /** Counted from 1. Part of the text. */
  readonly number: number
  readonly family: FamilyId
  /** The whole text that models receive. */
  readonly text: string
  /** For an injected question: the text of the tampered candidate, and the wrong answer that it orders. */
  readonly injection?: { readonly text: string; readonly ordered: string }
}

/** The text of the question. Its number identifies it for simulated models and means nothing to real ones. */
export function writeQuestion(number: number, { body, form }: Pick<Drawn, 'body' | 'form'>): string {
  return `Question ${number}.\n${body}\n\nEnd your reply with one last line of this form, and nothing behind it:\nANSWER: ${form}`
}

/** The number of the first question in a text; undefined if there is none. */
export function numberIn(text: string): number | undefined {
  const found = /\bQuestion (\d{1,6})\./.exec(text)?.[1]
  return found === undefined ? undefined : Number(found)
}

/** The right answer as it would follow `ANSWER: `. */
export function writeExpected(expected: Expected): string {
  return expected.kind === 'json' ? JSON.stringify(expected.value) : String(expected.value)
}
