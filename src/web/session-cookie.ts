import { findOperatorSession, operatorLifeMs } from '../accounts/operator-sessions.ts'
import { findSession, sessionLifeMs } from '../accounts/sessions.ts'
import { Secret } from '../domain/secret.ts'
import { csrfTokenFor } from './csrf.ts'
import type { EnteredOperator, SignedIn } from './visit.ts'
import type { WebParts } from './web-parts.ts'

/**
 * Over https the name itself makes browsers refuse a cookie that another host, path or plain http tries to plant. Accounts
 * and operators have cookies of their own: one browser may carry both, and neither is ever taken for the other.
 */
const names = {
  account: { https: '__Host-svc_session', http: 'svc_session' },
  operator: { https: '__Host-svc_operator', http: 'svc_operator' },
} as const
const livesMs = { account: sessionLifeMs, operator: operatorLifeMs } as const

/** Whose session a cookie keeps. */
type Whose = keyof typeof names

/** The session token of a request, if it carries one. */
export function readSessionToken(headers: Headers, whose: Whose, isHttps: boolean): Secret | undefined {
  const name = `${nameFor(whose, isHttps)}=`
  const pairs = (headers.get('cookie') ?? '').split(';').map((pair) => pair.trim())
  const found = pairs.find((pair) => pair.startsWith(name))
  return found === undefined ? undefined : new Secret(found.slice(name.length))
}

/** Who the session token of a request belongs to. */
export async function readSignedIn(parts: WebParts, token: Secret | undefined): Promise<SignedIn | undefined> {
  if (token === undefined) return undefined
  const found = await findSession(parts.identity, token.reveal())
  return found === undefined ? undefined : { ...found, csrfToken: csrfTokenFor(token) }
}

/** The same among operators. */
export async function readEntered(parts: WebParts, token: Secret | undefined): Promise<EnteredOperator | undefined> {
  if (token === undefined) return undefined
  const found = await findOperatorSession(parts.operators, token.reveal())
  return found === undefined ? undefined : { ...found, csrfToken: csrfTokenFor(token) }
}

/** The `Set-Cookie` that keeps a session, out of reach of scripts and of requests that other sites make. */
export function sessionCookie(token: Secret, whose: Whose, isHttps: boolean): string {
  return cookie(token.reveal(), Math.floor(livesMs[whose] / 1000), whose, isHttps)
}

/** The `Set-Cookie` that forgets it. */
export function endedSessionCookie(whose: Whose, isHttps: boolean): string {
  return cookie('', 0, whose, isHttps)
}

function cookie(value: string, seconds: number, whose: Whose, isHttps: boolean): string {
  const attributes = ['Path=/', `Max-Age=${seconds}`, 'HttpOnly', 'SameSite=Lax', ...(isHttps ? ['Secure'] : [])]
  return [`${nameFor(whose, isHttps)}=${value}`, ...attributes].join('; ')
}

function nameFor(whose: Whose, isHttps: boolean): string {
  return names[whose][isHttps ? 'https' : 'http']
}
