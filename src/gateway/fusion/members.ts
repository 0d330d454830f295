import type { Backend } from '../ports.ts'
import { familyOf } from './engine/model-family.ts'
import { qualityFloor } from './engine/plan.ts'
import type { FusionMember } from './engine/ports.ts'

/** The quality of all models if none is rated. */
const defaultQuality = 50

/**
 * Converts backends to fusion members. If only some are rated, the others get the lowest quality that is still asked:
 * nothing says that they are worse, and nothing that they should come first (contract 15.2). `atMs` is when they are called: without it, their prices only show which are known.
 */
export function membersOf(backends: readonly Backend[], atMs = 0): FusionMember[] {
  const rated = backends.flatMap(({ quality }) => (quality === undefined ? [] : [quality]))
  const otherwise = rated.length === 0 ? defaultQuality : Math.max(0, Math.max(...rated) - qualityFloor)
  return backends.map((backend): FusionMember => {
    const { id, model, failureDomain, contextWindow, maxOutputTokens, capabilities, quality, price } = backend
    return {
      id,
      model,
      family: familyOf(model),
      failureDomain,
      quality: quality ?? otherwise,
      ...(price === undefined ? {} : { price: price.at(atMs) }),
      ...(contextWindow === undefined ? {} : { contextWindow }),
      ...(maxOutputTokens === undefined ? {} : { maxOutputTokens }),
      ...(capabilities === undefined ? {} : { capabilities }),
    }
  })
}
