import { realmOf, type AccountPurpose, type Realm, type SignInProof } from '../../domain/identity.ts'
import type { Operator } from '../../domain/operators.ts'
import { idMinter } from '../../runtime/ids.ts'
import { Secret } from '../../runtime/secret.ts'
import { mintCode, mintToken, tokenDigest } from '../../runtime/tokens.ts'
import type { SendMail } from '../ports.ts'
import type { IdentityDeps } from './identity.ts'
import {
  askedProof,
  findExceeded,
  hasLink,
  proofLifeMs,
  type ProofRequester,
  type TooManyProofs,
} from './proof-limits.ts'
import { writeProofMail } from './sign-in-mails.ts'

const minuteMs = 60_000
/** How long a link printed on the server works (contract 19.1). */
const printedLinkLifeMs = 15 * minuteMs
/** Wrong codes allowed per proof (contract 19.2). */
export const maxTries = 5
/** How long expired proofs are stored, because the limits count them. */
const retentionMs = 24 * 60 * minuteMs
const codeShape = /^\d{6}$/
const tokenShape = /^[A-Za-z0-9_-]{43}$/

/** What signing in by email needs. */
export interface ProofMailDeps extends IdentityDeps {
  readonly sendMail: SendMail
  /** The public URL of the app, for links in emails. */
  readonly appUrl: string
}

export type StartedProof = { readonly proof: SignInProof } | TooManyProofs

/**
 * Sends a code to an address, with a link unless the purpose forbids one. It does the same for every address, whether
 * or not an account has it (contract 19.3); returns `retryAtMs` if too many were requested. @throws MailError
 */
export function startProof(
  deps: ProofMailDeps,
  address: string,
  purpose: AccountPurpose | 'operator_sign_in',
  { accountId, ...requester }: ProofRequester & { readonly accountId?: string },
): Promise<StartedProof> {
  return sendProof(deps, { purpose, address, accountId: accountId ?? null }, requester)
}

/** Sends a signed-in operator a code that confirms this one session. @throws MailError */
export function startConfirming(
  deps: ProofMailDeps,
  { operator, sessionId }: { readonly operator: Operator; readonly sessionId: string },
  breakerKey: ProofRequester,
): Promise<StartedProof> {
  const forOperator = { operatorId: operator.id, sessionId }
  const of = { purpose: 'operator_confirm', address: operator.email, accountId: null, forOperator } as const
  return sendProof(deps, of, breakerKey)
}

async function sendProof(
  deps: ProofMailDeps,
  of: Omit<SignInProof, 'id' | 'createdAtMs' | 'expiresAtMs'> & { readonly address: string },
  breakerKey: ProofRequester,
): Promise<StartedProof> {
  const { purpose, address } = of
  const proofRequest = askedProof(deps, purpose, address, breakerKey, of.forOperator?.sessionId ?? null)
  const before = await findExceeded(deps, proofRequest)
  if (typeof before === 'object') return before
  const code = before === 'link_only' ? undefined : mintCode(deps.random)
  const { proof, token } = await addProof(deps, { ...of, code, network: proofRequest.requester, lifeMs: proofLifeMs })
  const after = await findExceeded(deps, proofRequest, proof)
  if (typeof after === 'object') return after
  const link = hasLink(purpose) ? linkFor(deps.appUrl, realmOf(purpose), token) : undefined
  await deps.sendMail(writeProofMail(address, purpose, code, link))
  return { proof }
}

/** Creates a one-time sign-in link for an account, for the service's operator to pass on. */
export async function createSignInLink(deps: ProofDeps, accountId: string, appUrl: string): Promise<Secret> {
  const lifeMs = printedLinkLifeMs
  const { token } = await addProof(deps, { purpose: 'sign_in', address: null, accountId, code: undefined, lifeMs })
  return linkFor(appUrl, 'account', token)
}

/** The same for an operator and the console. */
export async function createOperatorLink(deps: ProofDeps, operatorId: string, appUrl: string): Promise<Secret> {
  const { token } = await addProof(deps, {
    purpose: 'operator_sign_in',
    address: null,
    accountId: null,
    forOperator: { operatorId, sessionId: null },
    code: undefined,
    lifeMs: printedLinkLifeMs,
  })
  return linkFor(appUrl, 'operator', token)
}

/** A token with which a page continues for an address that was already verified. */
export async function continueProof(deps: ProofDeps, address: string): Promise<Secret> {
  const lifeMs = proofLifeMs
  const of = { purpose: 'set_up', address, accountId: null, code: undefined, lifeMs } as const
  return (await addProof(deps, of)).token
}

/** The proof with that id in that realm, in any state. */
export async function findProof(deps: IdentityDeps, realm: Realm, proofId: string): Promise<SignInProof | undefined> {
  const proof = await deps.store.findProof(proofId)
  return proof === undefined || realmOf(proof.purpose) !== realm ? undefined : proof
}

/** Tries the code of a proof; a correct one consumes it. `over`: no such proof, expired, or tried too often. */
export async function tryCode(
  deps: IdentityDeps,
  realm: Realm,
  proofId: string,
  text: string,
): Promise<SignInProof | 'wrong' | 'over'> {
  if ((await findProof(deps, realm, proofId)) === undefined) return 'over'
  const code = text.replaceAll(/[\s-]/g, '')
  const digest = codeShape.test(code) ? codeDigest(deps, proofId, code) : ''
  const result = await deps.store.tryCode(proofId, digest, maxTries, deps.clock.nowMs())
  if (result === 'refused') return 'over'
  if (result === 'wrong') return 'wrong'
  return (await deps.store.findProof(proofId)) ?? 'over'
}

/** The usable proof of a link, to show where it leads; reading does not consume it. */
export async function findLink(deps: IdentityDeps, realm: Realm, token: string): Promise<SignInProof | undefined> {
  if (!tokenShape.test(token)) return undefined
  const proof = await deps.store.findProofByLink(linkDigest(deps, realm, token))
  return proof === undefined || deps.clock.nowMs() >= proof.expiresAtMs ? undefined : proof
}

/** Consumes a link; undefined if it is unknown, used, or expired. */
export async function takeLink(deps: IdentityDeps, realm: Realm, token: string): Promise<SignInProof | undefined> {
  return tokenShape.test(token) ? deps.store.useLink(linkDigest(deps, realm, token), deps.clock.nowMs()) : undefined
}

/** What creating a proof needs. */
export interface ProofDeps extends Omit<IdentityDeps, 'store'> {
  readonly store: Pick<IdentityDeps['store'], 'addProof'>
}

interface ProofDraft extends Omit<SignInProof, 'id' | 'createdAtMs' | 'expiresAtMs'> {
  readonly code: Secret | undefined
  readonly network?: string
  readonly lifeMs: number
}

async function addProof(deps: ProofDeps, draft: ProofDraft): Promise<{ proof: SignInProof; token: Secret }> {
  const { code, network, lifeMs, ...of } = draft
  const nowMs = Math.floor(deps.clock.nowMs())
  const id = idMinter('prf_', () => nowMs, deps.random)()
  const proof: SignInProof = { ...of, id, createdAtMs: nowMs, expiresAtMs: nowMs + lifeMs }
  const token = mintToken(deps.random)
  const digests = {
    code: code === undefined ? null : codeDigest(deps, id, code.reveal()),
    link: linkDigest(deps, realmOf(of.purpose), token.reveal()),
    ...(network !== undefined && { network }),
  }
  await deps.store.addProof(proof, digests, nowMs - retentionMs)
  return { proof, token }
}

/** Bound to its proof: the same six digits are wrong for another proof. */
function codeDigest(deps: ProofDeps, proofId: string, code: string): string {
  return tokenDigest(`code ${proofId}`, code, deps.pepper)
}

/** Bound to its realm: a link of one realm is unknown in the other. */
function linkDigest(deps: ProofDeps, realm: Realm, token: string): string {
  return tokenDigest(realm === 'operator' ? 'operator link' : 'link', token, deps.pepper)
}

function linkFor(appUrl: string, realm: Realm, token: Secret): Secret {
  const path = realm === 'operator' ? '/operator/sign-in/link' : '/sign-in/link'
  return new Secret(`${appUrl}${path}?token=${token.reveal()}`)
}
