import { idMinter } from '../domain/ids.ts'
import type { ProofPurpose, SignInProof } from '../domain/identity.ts'
import { Secret } from '../domain/secret.ts'
import { mintCode, mintToken, tokenDigest } from '../domain/tokens.ts'
import type { IdentityPlane } from './identity.ts'
import { writeProofMail } from './mails.ts'
import type { SendMail } from './ports.ts'

const minuteMs = 60_000
const hourMs = 3_600_000
/** How long a code and its link can be used. */
const proofLifeMs = 10 * minuteMs
/** How long a link can be used that is printed where the service runs. */
const printedLinkLifeMs = 15 * minuteMs
/** Wrong codes that a proof bears. */
export const maxTries = 5
/** Letters that one address gets; for addresses that nobody here knows just the same. */
const limits = [
  { windowMs: 15 * minuteMs, count: 5 },
  { windowMs: 24 * hourMs, count: 20 },
] as const
/** Ended proofs are kept so long, because they are what is counted. */
const keptMs = 24 * hourMs
const codeShape = /^\d{6}$/
const tokenShape = /^[A-Za-z0-9_-]{43}$/

/** What signing in by email works with besides. */
export interface MailPlane extends IdentityPlane {
  readonly sendMail: SendMail
  /** Where people reach the app; letters link there. */
  readonly appUrl: string
}

export type StartedProof = { readonly proof: SignInProof } | { readonly retryAtMs: number }

/**
 * Sends a code to an address, and unless an email is to be added a link. The same is done and said for every address,
 * whether or not an account has it; `retryAtMs` where it was asked for too often. @throws MailError
 */
export async function startProof(
  plane: MailPlane,
  address: string,
  purpose: ProofPurpose,
  accountId: string | null = null,
): Promise<StartedProof> {
  const nowMs = Math.floor(plane.clock.nowMs())
  for (const { windowMs, count: most } of limits) {
    const { count, firstAtMs } = await plane.store.countProofs(address, nowMs - windowMs)
    if (count >= most) return { retryAtMs: (firstAtMs ?? nowMs) + windowMs }
  }
  const code = mintCode(plane.random)
  const { proof, token } = await addProof(plane, { purpose, address, accountId, code, lifeMs: proofLifeMs })
  const link = purpose === 'add_email' ? undefined : linkFor(plane.appUrl, token)
  await plane.sendMail(writeProofMail(address, purpose, code, link))
  return { proof }
}

/** A link that signs in to an account once, for whoever runs the service to pass on. */
export async function createSignInLink(plane: ProofPlane, accountId: string, appUrl: string): Promise<Secret> {
  const lifeMs = printedLinkLifeMs
  const { token } = await addProof(plane, { purpose: 'sign_in', address: null, accountId, code: undefined, lifeMs })
  return linkFor(appUrl, token)
}

/** A token by which a page goes on with an address that was proven already. */
export async function continueProof(plane: ProofPlane, address: string): Promise<Secret> {
  const lifeMs = proofLifeMs
  const of = { purpose: 'set_up', address, accountId: null, code: undefined, lifeMs } as const
  return (await addProof(plane, of)).token
}

/** Tries the code of a proof; a right one uses it up. `over`: there is no such proof, it ended or was tried too often. */
export async function tryCode(
  plane: IdentityPlane,
  proofId: string,
  text: string,
): Promise<SignInProof | 'wrong' | 'over'> {
  const code = text.replaceAll(/[\s-]/g, '')
  const digest = codeShape.test(code) ? codeDigest(plane, proofId, code) : ''
  const result = await plane.store.tryCode(proofId, digest, maxTries, plane.clock.nowMs())
  if (result === 'refused') return 'over'
  if (result === 'wrong') return 'wrong'
  return (await plane.store.findProof(proofId)) ?? 'over'
}

/** The proof of a link while it can be used, for showing where it leads; looking uses nothing up. */
export async function findLink(plane: IdentityPlane, token: string): Promise<SignInProof | undefined> {
  if (!tokenShape.test(token)) return undefined
  const proof = await plane.store.findProofByLink(linkDigest(plane, token))
  return proof === undefined || plane.clock.nowMs() >= proof.expiresAtMs ? undefined : proof
}

/** Uses a link up; undefined where it was used, has ended or is none. */
export async function takeLink(plane: IdentityPlane, token: string): Promise<SignInProof | undefined> {
  return tokenShape.test(token) ? plane.store.useLink(linkDigest(plane, token), plane.clock.nowMs()) : undefined
}

/** What making a proof needs. */
export interface ProofPlane extends Omit<IdentityPlane, 'store'> {
  readonly store: Pick<IdentityPlane['store'], 'addProof'>
}

interface ProofDraft extends Pick<SignInProof, 'purpose' | 'address' | 'accountId'> {
  readonly code: Secret | undefined
  readonly lifeMs: number
}

async function addProof(plane: ProofPlane, draft: ProofDraft): Promise<{ proof: SignInProof; token: Secret }> {
  const { code, lifeMs, ...of } = draft
  const nowMs = Math.floor(plane.clock.nowMs())
  const id = idMinter('prf_', () => nowMs, plane.random)()
  const proof: SignInProof = { ...of, id, createdAtMs: nowMs, expiresAtMs: nowMs + lifeMs }
  const token = mintToken(plane.random)
  const digests = {
    code: code === undefined ? null : codeDigest(plane, id, code.reveal()),
    link: linkDigest(plane, token.reveal()),
  }
  await plane.store.addProof(proof, digests, nowMs - keptMs)
  return { proof, token }
}

/** Bound to its proof: the same six digits are another's wrong code. */
function codeDigest(plane: ProofPlane, proofId: string, code: string): string {
  return tokenDigest(`code ${proofId}`, code, plane.pepper)
}

function linkDigest(plane: ProofPlane, token: string): string {
  return tokenDigest('link', token, plane.pepper)
}

function linkFor(appUrl: string, token: Secret): Secret {
  return new Secret(`${appUrl}/sign-in/link?token=${token.reveal()}`)
}
