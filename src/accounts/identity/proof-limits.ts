import type { ProofPurpose, SignInProof } from '../../domain/identity.ts'
import { tokenDigest } from '../../runtime/tokens.ts'
import type { IdentityDeps } from './identity.ts'
import { readKnownBrowser } from './known-browser.ts'

const minuteMs = 60_000
const dayMs = 24 * 60 * minuteMs
/**
 * How long a code and its link work. The short windows below are as long: a caller who hits a limit still has an email
 * that works (contract 19.2).
 */
export const proofLifeMs = 10 * minuteMs

interface Limit {
  /**
   * What is counted. `requester`: one requester's emails to one address; `address`: all emails to it; `network`: all
   * emails requested from one network.
   */
  readonly of: 'requester' | 'address' | 'network'
  readonly windowMs: number
  readonly most: number
}

/**
 * Limits for everyone. They are counted in the store, so that all nodes share them, and count unknown addresses the
 * same way (contract 19.4).
 */
const strangerLimits: readonly Limit[] = [
  { of: 'requester', windowMs: proofLifeMs, most: 3 },
  { of: 'address', windowMs: proofLifeMs, most: 5 },
  { of: 'network', windowMs: proofLifeMs, most: 20 },
]
/**
 * Emails with a code per address and day, which bounds guessing. Beyond it an email carries only a link, and is sent
 * only after the previous one expired.
 */
const mostPerDay: Limit = { of: 'address', windowMs: dayMs, most: 20 }
const beyondPerDay: Limit = { of: 'address', windowMs: proofLifeMs, most: 1 }
/**
 * Limits for a browser in which the address was verified before: other people's requests do not count (contract 19.5).
 */
const knownLimits: readonly Limit[] = [
  { of: 'requester', windowMs: proofLifeMs, most: 5 },
  { of: 'requester', windowMs: dayMs, most: 20 },
]
/** Limits for an operator's session, which may need several confirmations an hour. */
const confirmLimits: readonly Limit[] = [
  { of: 'requester', windowMs: 15 * minuteMs, most: 8 },
  { of: 'requester', windowMs: dayMs, most: 80 },
]

/** The requester of an email. */
export interface ProofRequester {
  /** Identifies the network; only a digest of it is stored (contract 28.11). */
  readonly network: string
  /** The cookie that the browser stored when an address was last verified in it (see known-browser.ts). */
  readonly knownBrowser?: string | undefined
}

/** A requested email; `requester` is a digest of its requester. */
export interface ProofRequest {
  readonly purpose: ProofPurpose
  readonly address: string
  readonly requester: string
  readonly limits: readonly Limit[]
}

/** The limit that was reached, and when the next email may be requested. */
export interface TooManyProofs {
  readonly tooMany: 'address' | 'network'
  readonly retryAtMs: number
}

/**
 * Whether emails of that purpose carry a link. A link works in any browser, but some codes are only for the browser
 * that requested them.
 */
export function hasLink(purpose: ProofPurpose): boolean {
  return purpose !== 'add_email' && purpose !== 'operator_confirm'
}

/** The limits that apply to a requested email. `sessionId` is the session of the operator who confirms. */
export function askedProof(
  { pepper }: Pick<IdentityDeps, 'pepper'>,
  purpose: ProofPurpose,
  address: string,
  { network, knownBrowser }: ProofRequester,
  sessionId: string | null,
): ProofRequest {
  if (purpose === 'operator_confirm')
    return { purpose, address, requester: tokenDigest('session', sessionId ?? '', pepper), limits: confirmLimits }
  const known = readKnownBrowser(knownBrowser, address, pepper)
  if (known !== undefined)
    return { purpose, address, requester: tokenDigest('known browser', known, pepper), limits: knownLimits }
  return { purpose, address, requester: tokenDigest('network', network, pepper), limits: strangerLimits }
}

/**
 * The first limit that one more email would exceed; with `proof`, which is already stored, the first that it exceeds.
 * Of several stored concurrently the earliest stay within the limit, on every node. `link_only`: the email may be sent
 * without a code.
 */
export async function findExceeded(
  { store, clock }: Pick<IdentityDeps, 'store' | 'clock'>,
  { purpose, address, requester, limits }: ProofRequest,
  proof?: SignInProof,
): Promise<TooManyProofs | 'link_only' | undefined> {
  const nowMs = Math.floor(clock.nowMs())
  const exceeds = async ({ of, windowMs, most }: Limit): Promise<TooManyProofs | undefined> => {
    const who = { ...(of !== 'network' && { address }), ...(of !== 'address' && { network: requester }) }
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
