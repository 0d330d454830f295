import { type Json, type JsonObject, isObject } from '../../../../domain/json.ts'
import { isArray } from '../../../../formats/fields.ts'

/** Fields that identify the entries of a list, if every entry has a distinct value. */
const identifyingFields = ['id', 'key', 'name']
/** Deeper values are compared as a whole. */
const maxDepth = 32
/** Number of families that must agree for a value to be settled. */
const settlingFamilies = 2

/** One answer, parsed as JSON. The best answer comes first. */
export interface JsonAnswer {
  readonly value: Json
  readonly family: string
  /** The weight of its vote, above 0. */
  readonly weight: number
}

export interface MergedJson {
  readonly value: Json
  /** Number of values on which too few families agree, or the best answer disagrees. */
  readonly disputed: number
  /** Returns a copy of another answer with the settled values in place of its own. */
  settle(value: Json): Json
}

/**
 * Merges structured answers field by field: a value is settled if two families and the best answer agree on it;
 * elsewhere the larger weight wins (contract 15.9). Undefined for fewer than two answers.
 */
export function mergeJson(answers: readonly JsonAnswer[]): MergedJson | undefined {
  if (answers.length < 2) return undefined
  const { value, settled, disputed } = merge(answers, answers[0], 0)
  return { value, disputed, settle: (other) => applySettled(other, settled) }
}

/** What is settled of a value: the value itself, some of its fields, or nothing. */
type Settled = { readonly value: Json } | { readonly fields: ReadonlyMap<string, Settled> } | undefined

interface Merged {
  readonly value: Json
  readonly settled: Settled
  readonly disputed: number
}

/** `best` is the best answer's value here, absent if it has none. */
function merge(answers: readonly JsonAnswer[], best: JsonAnswer | undefined, depth: number): Merged {
  if (depth < maxDepth && answers.every(({ value }) => isObject(value))) return mergeObjects(answers, best, depth)
  if (depth < maxDepth) {
    const merged = mergeLists(answers, best, depth)
    if (merged !== undefined) return merged
  }
  return vote(answers, best)
}

function mergeObjects(answers: readonly JsonAnswer[], best: JsonAnswer | undefined, depth: number): Merged {
  const names = new Set(answers.flatMap(({ value }) => Object.keys(value as JsonObject)))
  const all = weightOf(answers)
  const fields = new Map<string, Settled>()
  const merged: [string, Json][] = []
  let disputed = 0
  for (const name of names) {
    const having = answers.flatMap((answer) => fieldOf(answer, name))
    // A field that only the lighter side has is left out; whether it belongs there stays open.
    if (weightOf(having) * 2 < all) {
      disputed += 1
      continue
    }
    const own = best !== undefined && isObject(best.value) ? fieldOf(best, name)[0] : undefined
    const field = merge(having, own, depth + 1)
    merged.push([name, field.value])
    disputed += field.disputed
    if (field.settled !== undefined) fields.set(name, field.settled)
  }
  return { value: Object.fromEntries(merged), settled: { fields }, disputed }
}

/** Merges lists entry by entry: by identifying field, or by position if all have the same length. */
function mergeLists(answers: readonly JsonAnswer[], best: JsonAnswer | undefined, depth: number): Merged | undefined {
  const lists = answers.map(({ value }) => value)
  if (!lists.every(isArray)) return undefined
  const field = identifyingFields.find((name) => lists.every((list) => areIdentifiedBy(list, name)))
  if (field === undefined && new Set(lists.map(({ length }) => length)).size > 1) return undefined
  const keyed = (answer: JsonAnswer): JsonAnswer => ({
    ...answer,
    value: toFields(answer.value as readonly Json[], field),
  })
  const own = best !== undefined && isArray(best.value) ? keyed(best) : undefined
  const { value, disputed } = mergeObjects(answers.map(keyed), own, depth)
  // Positions in another answer's list may differ, so nothing of a list is settled for it.
  return { value: Object.values(value as JsonObject) as Json[], settled: undefined, disputed }
}

function areIdentifiedBy(list: readonly Json[], name: string): boolean {
  const ids = list.map((entry) => (isObject(entry) ? entry[name] : undefined))
  return ids.every((id) => typeof id === 'string' || typeof id === 'number') && new Set(ids).size === ids.length
}

/** Entries as fields with prefixed names that keep their order, which numeric object keys would not. */
function toFields(list: readonly Json[], field: string | undefined): JsonObject {
  return Object.fromEntries(
    list.map((entry, index) => [
      `#${field === undefined ? index : JSON.stringify((entry as JsonObject)[field])}`,
      entry,
    ]),
  )
}

function vote(answers: readonly JsonAnswer[], best: JsonAnswer | undefined): Merged {
  const groups = new Map<string, JsonAnswer[]>()
  for (const answer of answers) {
    const key = JSON.stringify(answer.value)
    const group = groups.get(key)
    if (group === undefined) groups.set(key, [answer])
    else group.push(answer)
  }
  const [heaviest] = Array.from(groups.values()).sort((a, b) => weightOf(b) - weightOf(a))
  const group = heaviest!
  const { value } = group[0]!
  const families = new Set(group.map(({ family }) => family)).size
  const hasBest = best !== undefined && JSON.stringify(best.value) === JSON.stringify(value)
  // A single answer settles nothing; unanimous answers do, even from one family.
  const isSettled = hasBest && answers.length > 1 && (groups.size === 1 || families >= settlingFamilies)
  return { value, settled: isSettled ? { value } : undefined, disputed: isSettled ? 0 : 1 }
}

function fieldOf(answer: JsonAnswer, name: string): JsonAnswer[] {
  const field = Object.hasOwn(answer.value as JsonObject, name) ? (answer.value as JsonObject)[name] : undefined
  return field === undefined ? [] : [{ ...answer, value: field }]
}

function weightOf(answers: readonly JsonAnswer[]): number {
  return answers.reduce((sum, { weight }) => sum + weight, 0)
}

function applySettled(value: Json, settled: Settled): Json {
  if (settled === undefined) return value
  if ('value' in settled) return settled.value
  if (!isObject(value)) return value
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, field]) =>
      field === undefined ? [] : [[name, applySettled(field, settled.fields.get(name))]],
    ),
  )
}
