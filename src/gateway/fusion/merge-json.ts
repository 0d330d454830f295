import type { Json, JsonObject } from '../../domain/conversation.ts'
import { isObject } from '../../domain/json.ts'
import { isArray } from '../../formats/fields.ts'

/** Fields by which the entries of a list are told apart, where every entry has its own. */
const identifyingFields = ['id', 'key', 'name']
/** Deeper values are taken whole. */
const maxDepth = 32
/** Families that have to say the same for a value to be settled. */
const settlingFamilies = 2

/** One answer that was read as JSON. The first of several is the best. */
export interface JsonAnswer {
  readonly value: Json
  readonly family: string
  /** How much its word counts, above 0. */
  readonly weight: number
}

export interface MergedJson {
  readonly value: Json
  /** Values on which too few families agree, or the best answer does not. */
  readonly disputed: number
  /** The settled values: a copy of another answer in which they stand instead of its own. */
  settle(value: Json): Json
}

/**
 * Several structured answers as one, field by field: a value that two families agree on, and the best answer with them,
 * is settled; elsewhere the heavier word counts (contract 15.9). Undefined for fewer than two answers.
 */
export function mergeJson(answers: readonly JsonAnswer[]): MergedJson | undefined {
  if (answers.length < 2) return undefined
  const { value, settled, disputed } = merge(answers, answers[0], 0)
  return { value, disputed, settle: (other) => applySettled(other, settled) }
}

/** What is settled of a value: the value itself, or fields of it, or nothing. */
type Settled = { readonly value: Json } | { readonly fields: ReadonlyMap<string, Settled> } | undefined

interface Merged {
  readonly value: Json
  readonly settled: Settled
  readonly disputed: number
}

/** `best` is what the best answer says here, absent where it says nothing. */
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
    // A field that the lighter part has is left out; whether it belongs there is open.
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

/** Lists entry by entry: by what identifies their entries, else by place where all are of one length. */
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
  // Places in another answer's list need not be the same ones: nothing of a list is settled for it.
  return { value: Object.values(value as JsonObject) as Json[], settled: undefined, disputed }
}

function areIdentifiedBy(list: readonly Json[], name: string): boolean {
  const ids = list.map((entry) => (isObject(entry) ? entry[name] : undefined))
  return ids.every((id) => typeof id === 'string' || typeof id === 'number') && new Set(ids).size === ids.length
}

/** Entries as fields whose names keep their order: object keys that look like numbers would not. */
function toFields(list: readonly Json[], field: string | undefined): JsonObject {
  return Object.fromEntries(
    list.map((entry, place) => [
      `#${field === undefined ? place : JSON.stringify((entry as JsonObject)[field])}`,
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
  // One voice alone settles nothing; all that were heard do, be they of one family.
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
