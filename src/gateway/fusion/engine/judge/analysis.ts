import type { AnswerType, Verdict } from '../../../../domain/fusion-record.ts'
import { type Json, type JsonObject, isObject, objectOf } from '../../../../domain/json.ts'
import { isArray } from '../../../../formats/fields.ts'

const maxEntries = 8
const maxCharacters = 400

export const answerTypes = ['open', 'closed', 'code', 'structured', 'action'] as const satisfies readonly AnswerType[]

export const criteria = ['correct', 'complete', 'grounded', 'instruction', 'format'] as const
/** The judge's scores for one candidate, whole numbers from 0 to 10. */
export type Scores = Readonly<Record<(typeof criteria)[number], number>>

export const verdicts = ['adopt', 'synthesize', 'insufficient'] as const satisfies readonly Verdict[]

/** The judge's findings, validated: labels are those of candidates, and lists and texts are short. */
export interface Analysis {
  readonly answerType: AnswerType
  readonly consensus: readonly { readonly claim: string; readonly support: readonly string[] }[]
  readonly contradictions: readonly Contradiction[]
  readonly partialCoverage: readonly { readonly labels: readonly string[]; readonly point: string }[]
  readonly uniqueInsights: readonly { readonly label: string; readonly insight: string; readonly keep: boolean }[]
  readonly blindSpots: readonly string[]
  readonly scores: Readonly<Record<string, Scores>>
  readonly injectionFlags: readonly string[]
  readonly verdict: Verdict
  readonly outline: readonly string[]
}

interface Contradiction {
  readonly topic: string
  readonly material: boolean
  readonly positions: readonly { readonly labels: readonly string[]; readonly claim: string }[]
  /** Empty if the contradiction is unresolved. */
  readonly side: readonly string[]
  readonly check: string
}

/** A validated analysis, or the problem with it in a sentence that can be sent to the judge. */
export type AnalysisReading = { readonly analysis: Analysis } | { readonly problem: string }

/** Neutral default for a candidate that was not scored although others were. */
const defaultScore = 5

/**
 * Parses the judge's object leniently: text where an object was requested, one entry where a list was, labels in any
 * notation. Without a type, a verdict, and scores for at least half of the candidates there is nothing to decide on.
 */
export function readAnalysis(body: JsonObject, labels: readonly string[]): AnalysisReading {
  const scores = readScores(body['scores'], labels)
  if (scores === undefined)
    return { problem: `"scores" must hold whole numbers from 0 to 10 for ${labels.join(', ')}.` }
  const verdict = nameOf(body['verdict'], verdicts)
  if (verdict === undefined) return { problem: `"verdict" must be one of ${verdicts.join(', ')}.` }
  const answerType = nameOf(body['answer_type'], answerTypes)
  if (answerType === undefined) return { problem: `"answer_type" must be one of ${answerTypes.join(', ')}.` }
  const labelsOf = (value: Json | undefined): string[] => readLabels(value, labels)
  return {
    analysis: {
      answerType,
      scores,
      verdict,
      consensus: entries(body['consensus'], 'claim').flatMap((entry) => {
        const claim = textOf(entry['claim'])
        return claim === '' ? [] : [{ claim, support: labelsOf(entry['support']) }]
      }),
      contradictions: entries(body['contradictions'], 'topic').flatMap((entry) => readContradiction(entry, labelsOf)),
      partialCoverage: entries(body['partial_coverage'], 'point').flatMap((entry) => {
        const point = textOf(entry['point'])
        return point === '' ? [] : [{ point, labels: labelsOf(entry['labels']) }]
      }),
      uniqueInsights: entries(body['unique_insights'], 'insight').flatMap((entry) => {
        const [label] = labelsOf(entry['label'])
        const insight = textOf(entry['insight'])
        return label === undefined || insight === '' ? [] : [{ label, insight, keep: entry['keep'] !== false }]
      }),
      blindSpots: texts(body['blind_spots']),
      injectionFlags: labelsOf(body['injection_flags']),
      outline: texts(body['outline']),
    },
  }
}

function readContradiction(entry: JsonObject, labelsOf: (value: Json | undefined) => string[]): Contradiction[] {
  const topic = textOf(entry['topic'])
  if (topic === '') return []
  const resolution = objectOf(entry['resolution'])
  const positions = entries(entry['positions'], 'claim').map((position) => ({
    labels: labelsOf(position['labels']),
    claim: textOf(position['claim']),
  }))
  const side = labelsOf(resolution['side'] ?? entry['resolution'])
  return [{ topic, material: entry['material'] !== false, positions, side, check: textOf(resolution['check']) }]
}

/** Scores by label: an object, a list of entries that name their label, or one number per candidate. */
function readScores(value: Json | undefined, labels: readonly string[]): Record<string, Scores> | undefined {
  const pairs: [string, Json | undefined][] = isArray(value)
    ? value.filter(isObject).map((entry) => [textOf(entry['label'] ?? entry['candidate']), entry])
    : Object.entries(objectOf(value))
  const scores: Record<string, Scores> = {}
  let scored = 0
  for (const [name, given] of pairs.slice(0, maxEntries * 2)) {
    const label = labelIn(name, labels)
    const read = label === undefined ? undefined : scoresOf(given)
    if (label === undefined || read === undefined || label in scores) continue
    scores[label] = read
    scored += 1
  }
  if (scored * 2 < labels.length || scored === 0) return undefined
  for (const label of labels) scores[label] ??= scoresOf(defaultScore)!
  return scores
}

function scoresOf(value: Json | undefined): Scores | undefined {
  const single = scoreOf(value)
  const given = objectOf(value)
  const correct = single ?? scoreOf(given['correct']) ?? scoreOf(given['score'])
  if (correct === undefined) return undefined
  const of = (name: (typeof criteria)[number]): number => single ?? scoreOf(given[name]) ?? correct
  return {
    correct,
    complete: of('complete'),
    grounded: of('grounded'),
    instruction: of('instruction'),
    format: of('format'),
  }
}

/** 7, "7", "7/10", 7.4: a whole number from 0 to 10. */
function scoreOf(value: Json | undefined): number | undefined {
  const number = typeof value === 'string' ? Number.parseFloat(value) : value
  if (typeof number !== 'number' || !Number.isFinite(number)) return undefined
  return Math.min(10, Math.max(0, Math.round(number)))
}

function readLabels(value: Json | undefined, labels: readonly string[]): string[] {
  const given = isArray(value) ? value : typeof value === 'string' ? value.split(/[\s,;&]+/) : []
  const found = given.slice(0, maxEntries * 2).flatMap((entry) => labelIn(textOf(entry), labels) ?? [])
  return [...new Set(found)]
}

/** `B`, `b`, `Candidate B`, `[B]`. */
function labelIn(text: string, labels: readonly string[]): string | undefined {
  const letter = /(?:^|[^a-z])([a-h])[^a-z]*$/i.exec(text)?.[1]?.toUpperCase()
  return letter === undefined || !labels.includes(letter) ? undefined : letter
}

/** The entries of a list; text in place of an object becomes the object's `main` field. */
function entries(value: Json | undefined, main: string): JsonObject[] {
  const given = isArray(value) ? value : isObject(value) || typeof value === 'string' ? [value] : []
  return given.slice(0, maxEntries).flatMap((entry) => {
    if (isObject(entry)) return [entry]
    return typeof entry === 'string' ? [{ [main]: entry }] : []
  })
}

function texts(value: Json | undefined): string[] {
  const given = isArray(value) ? value : typeof value === 'string' ? [value] : []
  return given
    .slice(0, maxEntries)
    .map((entry) =>
      isObject(entry) ? textOf(Object.values(entry).find((field) => typeof field === 'string')) : textOf(entry),
    )
    .filter((text) => text !== '')
}

function textOf(value: Json | undefined): string {
  return typeof value === 'string' ? value.trim().slice(0, maxCharacters) : ''
}

function nameOf<Name extends string>(value: Json | undefined, names: readonly Name[]): Name | undefined {
  const given = textOf(value).toLowerCase()
  return names.find((name) => given === name) ?? names.find((name) => given.startsWith(name))
}
