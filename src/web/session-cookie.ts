import { findSession, sessionLifeMs } from '../accounts/sessions.ts'
import { Secret } from '../domain/secret.ts'
import { csrfTokenFor } from './csrf.ts'
import type { SignedIn } from './visit.ts'
import type { WebParts } from './web-parts.ts'

/** Over https the name itself makes browsers refuse a cookie that another host, path or plain http tries to plant. */
const names = { https: '__Host-svc_session', http: 'svc_session' } as const

/** The session token of a request, if it carries one. */
export function readSessionToken(headers: Headers, isHttps: boolean): Secret | undefined {
  const name = `${nameFor(isHttps)}=`
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

/** The `Set-Cookie` that keeps a session, out of reach of scripts and of requests that other sites make. */
export function sessionCookie(token: Secret, isHttps: boolean): string {
  return cookie(token.reveal(), Math.floor(sessionLifeMs / 1000), isHttps)
}

/** The `Set-Cookie` that forgets it. */
export function endedSessionCookie(isHttps: boolean): string {
  return cookie('', 0, isHttps)
}

function cookie(value: string, seconds: number, isHttps: boolean): string {
  const attributes = ['Path=/', `Max-Age=${seconds}`, 'HttpOnly', 'SameSite=Lax', ...(isHttps ? ['Secure'] : [])]
  return [`${nameFor(isHttps)}=${value}`, ...attributes].join('; ')
}

function nameFor(isHttps: boolean): string {
  return isHttps ? names.https : names.http
}
