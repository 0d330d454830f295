import type { AuthenticationResponseJSON, RegistrationResponseJSON } from '@simplewebauthn/server'
import { challengeLifeMs, mintChallenge, takeChallenge } from '../../accounts/identity/challenges.ts'
import type { Account } from '../../domain/accounts.ts'
import type { Passkey } from '../../domain/identity.ts'
import { parseObject } from '../../domain/json.ts'
import { originOf } from '../http/hosts.ts'
import type { Visit } from '../http/visit.ts'

const productName = 'svc-router'
/** Ed25519, ECDSA with P-256, RSA (COSE). */
const algorithms = [-8, -7, -257]
const signInPurpose = 'sign in'

/** Loaded when a passkey is first used: its 250 files and certificates take 8 MB. */
const loadLibrary = () => import('@simplewebauthn/server')

/** The site for passkeys; undefined where browsers do not allow them (IP addresses and plain http). */
export function passkeySite({ headers, deps }: Visit): { readonly id: string; readonly origin: string } | undefined {
  const origin = originOf(headers.get('host') ?? '', deps.appUrl)
  const { hostname, protocol } = new URL(origin)
  if (/^[\d.]+$|:/.test(hostname)) return undefined
  return protocol === 'https:' || hostname === 'localhost' ? { id: hostname, origin } : undefined
}

/** WebAuthn options for signing in, as JSON. */
export function signInOptions(visit: Visit, siteId: string): string {
  return JSON.stringify({
    challenge: mintChallenge(visit.deps.identity, signInPurpose),
    rpId: siteId,
    allowCredentials: [],
    userVerification: 'required',
    timeout: challengeLifeMs,
  })
}

/** WebAuthn options for a new passkey, as JSON. `known` passkeys of the account are excluded. */
export function registrationOptions(visit: Visit, siteId: string, account: Account, known: readonly Passkey[]): string {
  return JSON.stringify({
    challenge: mintChallenge(visit.deps.identity, registrationPurpose(account.id)),
    rp: { id: siteId, name: productName },
    user: { id: Buffer.from(account.id).toString('base64url'), name: account.name, displayName: account.name },
    pubKeyCredParams: algorithms.map((alg) => ({ type: 'public-key', alg })),
    authenticatorSelection: { residentKey: 'required', requireResidentKey: true, userVerification: 'required' },
    excludeCredentials: known.map(({ id, transports }) => ({ type: 'public-key', id, transports })),
    attestation: 'none',
    timeout: challengeLifeMs,
  })
}

/** The passkey that signed the challenge, which is then consumed; undefined if verification fails. */
export async function checkSignIn(visit: Visit, answer: string): Promise<Passkey | undefined> {
  const { identity, clock } = visit.deps
  const site = passkeySite(visit)
  const response = parseObject(answer) as AuthenticationResponseJSON | undefined
  if (site === undefined || typeof response?.id !== 'string') return undefined
  const passkey = await identity.store.findPasskey(response.id)
  if (passkey === undefined) return undefined
  const { verifyAuthenticationResponse } = await loadLibrary()
  const verified = await orNothing(() =>
    verifyAuthenticationResponse({
      response,
      expectedChallenge: (challenge) => takeChallenge(identity, signInPurpose, challenge),
      expectedOrigin: site.origin,
      expectedRPID: site.id,
      requireUserVerification: true,
      credential: {
        id: passkey.id,
        publicKey: Uint8Array.from(Buffer.from(passkey.publicKey, 'base64url')),
        counter: passkey.counter,
      },
    }),
  )
  if (verified?.verified !== true) return undefined
  await identity.store.usePasskey(passkey.id, verified.authenticationInfo.newCounter, clock.nowMs())
  return passkey
}

/** The new passkey; undefined if verification fails. */
export async function checkRegistration(
  visit: Visit,
  account: Account,
  answer: string,
): Promise<Pick<Passkey, 'id' | 'publicKey' | 'counter' | 'transports'> | undefined> {
  const site = passkeySite(visit)
  const response = parseObject(answer) as RegistrationResponseJSON | undefined
  if (site === undefined || response === undefined) return undefined
  const { identity } = visit.deps
  const { verifyRegistrationResponse } = await loadLibrary()
  const verified = await orNothing(() =>
    verifyRegistrationResponse({
      response,
      expectedChallenge: (challenge) => takeChallenge(identity, registrationPurpose(account.id), challenge),
      expectedOrigin: site.origin,
      expectedRPID: site.id,
      requireUserVerification: true,
      supportedAlgorithmIDs: algorithms,
    }),
  )
  if (verified?.verified !== true) return undefined
  const { id, publicKey, counter, transports = [] } = verified.registrationInfo.credential
  return { id, publicKey: Buffer.from(publicKey).toString('base64url'), counter, transports }
}

function registrationPurpose(accountId: string): string {
  return `register ${accountId}`
}

/** The library throws on malformed or foreign input. Such input is rejected and is not a bug of ours. */
async function orNothing<Value>(verify: () => Promise<Value>): Promise<Value | undefined> {
  try {
    return await verify()
  } catch {
    return undefined
  }
}
