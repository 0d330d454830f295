import type { Backend } from '../ports.ts'
import { familyOf } from './family.ts'
import { qualityFloor } from './plan.ts'
import type { FusionMember } from './ports.ts'

/** How good all models are held to be where nobody said anything of any. */
const unsaidQuality = 50

/**
 * The backends as fusion sees them. Where only some were rated, the others are held to be just good enough to be asked:
 * nobody said that they are worse, and nobody that they should come first.
 */
export function membersOf(backends: readonly Backend[]): FusionMember[] {
  const rated = backends.flatMap(({ quality }) => (quality === undefined ? [] : [quality]))
  const otherwise = rated.length === 0 ? unsaidQuality : Math.max(0, Math.max(...rated) - qualityFloor)
  return backends.map((backend): FusionMember => {
    const { id, model, failureDomain, contextWindow, maxOutputTokens, capabilities, quality, usdPerMillion } = backend
    return {
      id,
      model,
      family: familyOf(model),
      failureDomain,
      quality: quality ?? otherwise,
      ...(usdPerMillion === undefined ? {} : { price: usdPerMillion }),
      ...(contextWindow === undefined ? {} : { contextWindow }),
      ...(maxOutputTokens === undefined ? {} : { maxOutputTokens }),
      ...(capabilities === undefined ? {} : { capabilities }),
    }
  })
}
