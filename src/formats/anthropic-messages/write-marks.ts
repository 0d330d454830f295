import { bytesPerToken } from '../../domain/estimate-tokens.ts'
import { type JsonObject, isObject } from '../../domain/json.ts'
import { partsAfter, type MarkInsertion } from '../cache/insert-marks.ts'
import { cacheControl, cacheControlText, type PlacedOutline } from '../cache/placed-blocks.ts'
import { mostMarks, planMarks } from '../cache/plan-marks.ts'
import { type Draft, isArray } from '../fields.ts'
import type { WriteTarget } from '../format.ts'
import { outlineOf } from './cache-outline.ts'
import { traitsFor } from './model-traits.ts'

/** Our estimate of tokens may be this much too low. */
const surelyShort = 0.7

/** Adds cache marks to a body that was just written, and removes those of the caller that are too many. */
export function markBody(body: Draft<JsonObject>, { cache }: WriteTarget): void {
  const outline = outlineOf(body)
  if (outline.taken > mostMarks) dropMarks(body, outline, outline.taken - mostMarks)
  if (cache?.addsMarks !== true) return
  for (const { at, lifetime } of planMarks(outline, cache).marks) {
    const block = blockAt(body, outline, at)
    if (block !== undefined) block['cache_control'] = cacheControl(lifetime)
  }
}

/** The marks to add to a request that is relayed. */
export function relayMarks(body: JsonObject, bytes: number, target: WriteTarget): MarkInsertion[] {
  const { cacheMarks, cacheMinimum } = traitsFor(target)
  const { cache } = target
  if (!cacheMarks || cache?.addsMarks !== true) return []
  // A shorter prompt is not stored, whatever its marks.
  if (bytes / bytesPerToken < cacheMinimum * surelyShort) return []
  const outline = outlineOf(body)
  return planMarks(outline, cache).marks.map(({ at, lifetime }) => {
    const member = memberOf(outline, at)
    const { index, part } = outline.placed.placeOf(at)
    const list = body[member]
    const fromEnd = isArray(list) ? list.length - 1 - index : 0
    const mark = cacheControlText[lifetime]
    const partFromEnd = member === 'messages' && isArray(list) ? partsAfter(list[index], part) : undefined
    return { member, fromEnd, partFromEnd, mark, textType: 'text' }
  })
}

/** Removes the marks nearest to the beginning: the later ones cover their prefixes too. */
function dropMarks(body: JsonObject, outline: PlacedOutline, count: number): void {
  let left = count
  for (const [at, { lifetime }] of outline.blocks.entries()) {
    if (left === 0) return
    const block = lifetime === undefined ? undefined : blockAt(body, outline, at)
    if (block?.['cache_control'] === undefined) continue
    delete block['cache_control']
    left -= 1
  }
}

/** The block itself. Writers create every block, so it may be changed. */
function blockAt(body: JsonObject, outline: PlacedOutline, at: number): Draft<JsonObject> | undefined {
  const list = body[memberOf(outline, at)]
  const { index, part } = outline.placed.placeOf(at)
  const entry = isArray(list) ? list[index] : undefined
  const content = isObject(entry) && part >= 0 ? entry['content'] : undefined
  const block = part < 0 ? entry : isArray(content) ? content[part] : undefined
  return isObject(block) ? block : undefined
}

function memberOf({ toolsEnd, systemEnd }: PlacedOutline, at: number): 'tools' | 'system' | 'messages' {
  if (at < toolsEnd) return 'tools'
  return at < systemEnd ? 'system' : 'messages'
}
