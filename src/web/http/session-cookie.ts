import { knownLifeMs, mintKnownBrowser } from '../../accounts/identity/known-browser.ts'
import type { ProofRequester } from '../../accounts/identity/proof-limits.ts'
import { findSession, sessionLifeMs } from '../../accounts/identity/sessions.ts'
import { findOperatorSession, operatorLifeMs } from '../../accounts/operators/operator-sessions.ts'
import { addressGroup } from '../../runtime/networks.ts'
import { Secret } from '../../runtime/secret.ts'
import type { WebDeps } from '../web-deps.ts'
import { csrfTokenFor } from './csrf.ts'
import type { SignedInOperator, SignedIn, Visit } from './visit.ts'

/**
 * With https, the `__Host-` prefix makes browsers reject such cookies from another host, path, or plain http. Accounts
 * and operators have separate cookies: a browser can have both, and neither is accepted in place of the other.
 */
const names = {
  account: { https: '__Host-svc_session', http: 'svc_session' },
  operator: { https: '__Host-svc_operator', http: 'svc_operator' },
} as const
/** Set at sign-in by email and kept after sign-out (see accounts/identity/known-browser.ts). */
const knownNames = { https: '__Host-svc_known', http: 'svc_known' } as const
const livesMs = { account: sessionLifeMs, operator: operatorLifeMs } as const

/** The kind of session a cookie belongs to. */
type SessionRealm = keyof typeof names

/** The session token of a request, if any. */
export function readSessionToken(headers: Headers, whose: SessionRealm, isHttps: boolean): Secret | undefined {
  const text = readCookie(headers, nameFor(whose, isHttps))
  return text === undefined ? undefined : new Secret(text)
}

function readCookie(headers: Headers, named: string): string | undefined {
  const name = `${named}=`
  const pairs = (headers.get('cookie') ?? '').split(';').map((pair) => pair.trim())
  const found = pairs.find((pair) => pair.startsWith(name))
  return found?.slice(name.length)
}

/** The account and session that a session token belongs to. */
export async function readSignedIn(deps: WebDeps, token: Secret | undefined): Promise<SignedIn | undefined> {
  if (token === undefined) return undefined
  const found = await findSession(deps.identity, token.reveal())
  return found === undefined ? undefined : { ...found, csrfToken: csrfTokenFor(token) }
}

/** The same for operators. */
export async function readSignedInOperator(
  deps: WebDeps,
  token: Secret | undefined,
): Promise<SignedInOperator | undefined> {
  if (token === undefined) return undefined
  const found = await findOperatorSession(deps.operators, token.reveal())
  return found === undefined ? undefined : { ...found, csrfToken: csrfTokenFor(token) }
}

/** The `Set-Cookie` for a session: not readable by scripts and not sent with cross-site requests (contract 20.3). */
export function sessionCookie(token: Secret, whose: SessionRealm, isHttps: boolean): string {
  return cookie(nameFor(whose, isHttps), token.reveal(), livesMs[whose], isHttps)
}

/** The `Set-Cookie` that deletes it. */
export function endedSessionCookie(whose: SessionRealm, isHttps: boolean): string {
  return cookie(nameFor(whose, isHttps), '', 0, isHttps)
}

/** The `Set-Cookie` that marks this browser as one where an address was verified; empty if none was. */
export function knownBrowserCookies({ identity, appUrl }: WebDeps, address: string | null): readonly string[] {
  if (address === null) return []
  const isHttps = appUrl.startsWith('https:')
  const text = mintKnownBrowser(address, identity.random, identity.pepper)
  return [cookie(knownNames[isHttps ? 'https' : 'http'], text, knownLifeMs, isHttps)]
}

/** Who requests an email: the client's address and its known-browser cookie, if any. */
export function requesterOf({ deps, headers, address }: Visit): ProofRequester {
  const name = knownNames[deps.appUrl.startsWith('https:') ? 'https' : 'http']
  return { network: addressGroup(address), knownBrowser: readCookie(headers, name) }
}

function cookie(name: string, value: string, lifeMs: number, isHttps: boolean): string {
  const attributes = [
    'Path=/',
    `Max-Age=${Math.floor(lifeMs / 1000)}`,
    'HttpOnly',
    'SameSite=Lax',
    ...(isHttps ? ['Secure'] : []),
  ]
  return [`${name}=${value}`, ...attributes].join('; ')
}

function nameFor(whose: SessionRealm, isHttps: boolean): string {
  return names[whose][isHttps ? 'https' : 'http']
}
