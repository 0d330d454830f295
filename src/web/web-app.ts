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

/** What the listener knows of a request besides itself: the other end of its connection. */
export interface Peer {
  readonly peerAddress: string
  /** For answers that are no pages: absent where there is no connection. */
  readonly connection?: Connection
}

type Fetch = (request: Request, peer: Peer) => Promise<Response>

/** The app as a function from request to answer. The table of routes says all that can be called (contract 20.2). */
export function createWebApp(parts: WebParts, routes: readonly Route[]): Fetch {
  const hono = new Hono<{ Bindings: Peer }>()
  for (const route of routes) hono.on(route.method, route.path, (context) => serve(parts, context, route))
  // A path of the table, asked for in another way.
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

/** A row that refuses whoever asks. */
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

/** Who is signed in to an account, and what was filled in where a form is taken. */
async function withSession(visit: Visit, request: Request, { method, access }: Route): Promise<Visit> {
  const { parts, headers } = visit
  const token = readSessionToken(headers, 'account', parts.appUrl.startsWith('https:'))
  const signedIn = await readSignedIn(parts, token)
  if (method === 'GET') return { ...visit, signedIn }
  return { ...visit, form: await readOwnForm(visit, request, signedIn, access === 'script'), signedIn }
}

/** A page that is for somebody who is signed in: there first, and back here. */
function toSignIn(method: string, path: string): Response {
  return redirect(method === 'POST' ? '/sign-in' : `/sign-in?next=${encodeURIComponent(path)}`)
}
