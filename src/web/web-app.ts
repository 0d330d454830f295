import { Hono, type Context } from 'hono'
import { Form } from './form.ts'
import { isLoopback, isOwnHost } from './hosts.ts'
import { clientAddress } from '../domain/client-address.ts'
import { serveConsole } from './operator/gate.ts'
import { readOwnForm } from './own-form.ts'
import { maxWebhookBytes, readBytes } from './read-form.ts'
import { redirect } from './redirect.ts'
import { PageRefusal, refusalPage } from './refusals.ts'
import type { Route } from './route.ts'
import { setSecurityHeaders } from './security-headers.ts'
import { readSessionToken, readSignedIn } from './session-cookie.ts'
import type { Connection, Visit } from './visit.ts'
import type { WebParts } from './web-parts.ts'

/** The connection that a request arrived on. */
export interface Peer {
  readonly peerAddress: string
  /** For responses that are not pages; absent if there is no connection. */
  readonly connection?: Connection
}

type Fetch = (request: Request, peer: Peer) => Promise<Response>

/** Creates the app as a function from request to response. Only the routes in the table can be called (contract 20.2). */
export function createWebApp(parts: WebParts, routes: readonly Route[]): Fetch {
  const hono = new Hono<{ Bindings: Peer }>()
  for (const route of routes) hono.on(route.method, route.path, (context) => serve(parts, context, route))
  // Known paths with another method.
  for (const path of new Set(routes.map((route) => route.path)))
    hono.all(path, async (context) => {
      const response = await serve(parts, context, refusing('wrong_method'))
      response.headers.set('Allow', allowedAt(path, routes))
      return response
    })
  hono.notFound((context) => serve(parts, context, refusing('not_found')))
  return async (request, peer) => hono.fetch(request, peer)
}

/** The methods of a path, as `Allow` lists them. */
function allowedAt(path: string, routes: readonly Route[]): string {
  return routes
    .flatMap((route) => (route.path !== path ? [] : route.method === 'GET' ? ['GET', 'HEAD'] : ['POST']))
    .join(', ')
}

/** A route that always fails with the given error page. */
function refusing(code: 'wrong_method' | 'not_found'): Route {
  const handle = (): never => {
    throw new PageRefusal(code)
  }
  return { method: 'GET', path: '', access: 'public', handle }
}

async function serve(parts: WebParts, context: Context<{ Bindings: Peer }>, route: Route): Promise<Response> {
  const requestId = parts.mintRequestId()
  const isHttps = parts.appUrl.startsWith('https:')
  const response = await answer(parts, context, route, requestId)
  setSecurityHeaders(response.headers, isHttps, route.formTargets?.(parts))
  response.headers.set('X-Request-Id', requestId)
  return response
}

async function answer(
  parts: WebParts,
  context: Context<{ Bindings: Peer }>,
  route: Route,
  requestId: string,
): Promise<Response> {
  const request = context.req.raw
  const { headers } = request
  const { pathname: path, searchParams: query } = new URL(request.url)
  const { peerAddress, connection } = context.env
  let visit: Visit = {
    parts,
    requestId,
    path,
    params: context.req.param(),
    query,
    headers,
    form: new Form(),
    address: clientAddress(peerAddress, headers.get('x-forwarded-for'), parts.trustedProxies),
    isFromThisMachine: isLoopback(peerAddress) && !headers.has('x-forwarded-for') && !headers.has('forwarded'),
    userAgent: headers.get('user-agent') ?? '',
    signedIn: undefined,
  }
  try {
    if (!isOwnHost(headers.get('host') ?? '', parts.appUrl, parts.mode)) throw new PageRefusal('wrong_host')
    if (route.access === 'webhook') {
      const body = await readBytes(request, maxWebhookBytes)
      return await route.handle({ ...visit, body })
    }
    if (route.access === 'operator' || route.access === 'door') return await serveConsole(visit, request, route)
    visit = await withSession(visit, request, route)
    if (route.access === 'public') return await route.handle(visit)
    const { signedIn } = visit
    if (route.access === 'script') {
      if (signedIn === undefined) throw new PageRefusal('signed_out')
      if (connection === undefined) throw new Error('a script without a connection')
      return await route.handle({ ...visit, signedIn, connection })
    }
    return signedIn === undefined ? toSignIn(request.method, path) : await route.handle({ ...visit, signedIn })
  } catch (error) {
    return refusalPage(visit, error)
  }
}

/** Adds the session of an account and the submitted form to a visit. */
async function withSession(visit: Visit, request: Request, { method, access }: Route): Promise<Visit> {
  const { parts, headers } = visit
  const token = readSessionToken(headers, 'account', parts.appUrl.startsWith('https:'))
  const signedIn = await readSignedIn(parts, token)
  if (method === 'GET') return { ...visit, signedIn }
  return { ...visit, form: await readOwnForm(visit, request, signedIn, access === 'script'), signedIn }
}

/** Redirects to sign-in and back to this page. */
function toSignIn(method: string, path: string): Response {
  return redirect(method === 'POST' ? '/sign-in' : `/sign-in?next=${encodeURIComponent(path)}`)
}
