import type { ProofPurpose, SignInProof } from '../domain/identity.ts'
import { tokenDigest } from '../domain/tokens.ts'
import type { IdentityPlane } from './identity.ts'
import { readKnownBrowser } from './known-browser.ts'

const minuteMs = 60_000
const dayMs = 24 * 60 * minuteMs
/** How long a code and its link work. The short windows below are as long: who is refused has an email that still works (contract 19.2). */
export const proofLifeMs = 10 * minuteMs

interface Limit {
  /** `asker`: one asker's emails to one address; `address`: all emails to it; `network`: all that one network asks for. */
  readonly of: 'asker' | 'address' | 'network'
  readonly windowMs: number
  readonly most: number
}

/** For anybody. They are counted in the store, so that all nodes share them, and for unknown addresses just the same (contract 19.4). */
const strangerLimits: readonly Limit[] = [
  { of: 'asker', windowMs: proofLifeMs, most: 3 },
  { of: 'address', windowMs: proofLifeMs, most: 5 },
  { of: 'network', windowMs: proofLifeMs, most: 20 },
]
/**
 * Emails with a code that an address gets in a day, which bounds what guessing can do. Beyond it an email has a link
 * alone, and comes only after the last one stopped working.
 */
const mostPerDay: Limit = { of: 'address', windowMs: dayMs, most: 20 }
const beyondPerDay: Limit = { of: 'address', windowMs: proofLifeMs, most: 1 }
/** For a browser in which the address was proven before: what others ask for does not count (contract 19.5). */
const knownLimits: readonly Limit[] = [
  { of: 'asker', windowMs: proofLifeMs, most: 5 },
  { of: 'asker', windowMs: dayMs, most: 20 },
]
/** For an operator's session, which may have to confirm a few times an hour. */
const confirmLimits: readonly Limit[] = [
  { of: 'asker', windowMs: 15 * minuteMs, most: 8 },
  { of: 'asker', windowMs: dayMs, most: 80 },
]

/** Who asks for an email. */
export interface Asker {
  /** A name of the network; only a digest of it is kept. */
  readonly network: string
  /** What the browser kept from the last time that an address was proven in it (see known-browser.ts). */
  readonly knownBrowser?: string | undefined
}

/** An email that is asked for, and by whom: `asker` is a digest. */
export interface AskedProof {
  readonly purpose: ProofPurpose
  readonly address: string
  readonly asker: string
  readonly limits: readonly Limit[]
}

/** A limit that is reached, and when the next email may be asked for. */
export interface TooMany {
  readonly tooMany: 'address' | 'network'
  readonly retryAtMs: number
}

/** Whether an email of that purpose has a link. It would be followed in any browser: some codes are for the one that asked. */
export function hasLink(purpose: ProofPurpose): boolean {
  return purpose !== 'add_email' && purpose !== 'operator_confirm'
}

/** Which limits hold for an email that is asked for. `sessionId` is the operator's who confirms. */
export function askedProof(
  { pepper }: Pick<IdentityPlane, 'pepper'>,
  purpose: ProofPurpose,
  address: string,
  { network, knownBrowser }: Asker,
  sessionId: string | null,
): AskedProof {
  if (purpose === 'operator_confirm')
    return { purpose, address, asker: tokenDigest('session', sessionId ?? '', pepper), limits: confirmLimits }
  const known = readKnownBrowser(knownBrowser, address, pepper)
  if (known !== undefined)
    return { purpose, address, asker: tokenDigest('known browser', known, pepper), limits: knownLimits }
  return { purpose, address, asker: tokenDigest('network', network, pepper), limits: strangerLimits }
}

/**
 * The first limit that one more email would exceed; with `proof`, which is kept already, the first that it exceeds. Of
 * several that are kept at once those that come first are within the limit, on every node. `link_only`: the email may be
 * sent, without a code.
 */
export async function findExceeded(
  { store, clock }: Pick<IdentityPlane, 'store' | 'clock'>,
  { purpose, address, asker, limits }: AskedProof,
  proof?: SignInProof,
): Promise<TooMany | 'link_only' | undefined> {
  const nowMs = Math.floor(clock.nowMs())
  const exceeds = async ({ of, windowMs, most }: Limit): Promise<TooMany | undefined> => {
    const who = { ...(of !== 'network' && { address }), ...(of !== 'address' && { network: asker }) }
    const { count, firstAtMs } = await store.countProofs(who, nowMs - windowMs, proof)
    const isOver = count + (proof === undefined ? 1 : 0) > most
    if (!isOver) return undefined
    return { tooMany: of === 'network' ? 'network' : 'address', retryAtMs: (firstAtMs ?? nowMs) + windowMs }
  }
  for (const limit of limits) {
    const found = await exceeds(limit)
    if (found !== undefined) return found
  }
  const perDay = limits === strangerLimits ? await exceeds(mostPerDay) : undefined
  if (perDay === undefined) return undefined
  return hasLink(purpose) ? ((await exceeds(beyondPerDay)) ?? 'link_only') : perDay
}
