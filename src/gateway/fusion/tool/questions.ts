import { type Json, isObject } from '../../../domain/json.ts'
import { isArray } from '../../../formats/fields.ts'

const maxQuestionCharacters = 8_000
const maxFocus = 8
const maxFocusCharacters = 400
/** Questions that one run answers together; further calls in one turn are not answered. */
export const maxQuestions = 3

/** The questions of a run. */
export interface Questions {
  readonly questions: readonly string[]
  readonly focus: readonly string[]
}

/**
 * Leniently parses the arguments of one call: plain text counts as a question. Undefined if they contain no question.
 */
export function readCall(text: string): Questions | undefined {
  const value = parse(text)
  const given = isObject(value) ? value : { question: value }
  const { question, focus } = given
  if (typeof question !== 'string' || question.trim() === '') return undefined
  const points = isArray(focus) ? focus : [focus]
  return {
    questions: [question.trim().slice(0, maxQuestionCharacters)],
    focus: points
      .flatMap((point) => (typeof point === 'string' && point.trim() !== '' ? [point.trim()] : []))
      .slice(0, maxFocus)
      .map((point) => point.slice(0, maxFocusCharacters)),
  }
}

/** Combines the calls of one turn into one run, without duplicate questions. */
export function joinCalls(calls: readonly Questions[]): Questions {
  const focus = [...new Set(calls.flatMap((call) => call.focus))].slice(0, maxFocus)
  return { questions: [...new Set(calls.flatMap(({ questions }) => questions))].slice(0, maxQuestions), focus }
}

/** A key that is equal for runs with the same questions, ignoring whitespace. */
export function keyOf({ questions, focus }: Questions): string {
  return JSON.stringify([questions, focus])
    .replace(/(?:\s|\\n)+/g, ' ')
    .toLowerCase()
}

function parse(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json
  } catch {
    // The model wrote no JSON: its call has no question.
    return undefined
  }
}
