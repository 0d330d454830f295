import { dayMs } from '../../runtime/durations.ts'
import type { RandomBytes } from '../../runtime/random.ts'
import type { Secret } from '../../runtime/secret.ts'
import { isSameDigest, mintToken, tokenDigest } from '../../runtime/tokens.ts'

/** How long a browser stays known after its last sign-in (contract 19.5). */
export const knownLifeMs = 180 * dayMs
const shape = /^([\w-]{43})\.([\w-]{43})$/

/**
 * Creates the cookie value that a browser stores after an email address was verified in it: a random id and a digest
 * that binds it to the address. It signs nobody in. It only lets this browser request codes after strangers requested
 * too many.
 */
export function mintKnownBrowser(address: string, random: RandomBytes, pepper: Secret): string {
  const id = mintToken(random).reveal()
  return `${id}.${digestOf(id, address, pepper)}`
}

/** The id of a browser in which `address` was verified; undefined for any other text. */
export function readKnownBrowser(text: string | undefined, address: string, pepper: Secret): string | undefined {
  const [, id, digest] = shape.exec(text ?? '') ?? []
  if (id === undefined || digest === undefined) return undefined
  return isSameDigest(digest, digestOf(id, address, pepper)) ? id : undefined
}

function digestOf(id: string, address: string, pepper: Secret): string {
  return tokenDigest(`browser of ${address}`, id, pepper)
}
