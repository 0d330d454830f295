import { Hono, type Context } from 'hono'
import { clientAddress } from '../domain/client-address.ts'
import { AdminApi, adminPath } from './admin/admin-api.ts'
import type { AdminDeps } from './admin/admin-deps.ts'
import { errorPage } from './components/error-page.ts'
import { Form } from './http/form.ts'
import { isLoopback, isOwnHost } from './http/hosts.ts'
import type { HttpExchange } from './http/http-exchange.ts'
import { readOwnForm } from './http/own-form.ts'
import { PageError } from './http/page-error.ts'
import { maxWebhookBytes, readBytes } from './http/read-form.ts'
import { redirect } from './http/redirect.ts'
import type { PageRoute } from './http/route.ts'
import { setSecurityHeaders } from './http/security-headers.ts'
import { readSessionToken, readSignedIn } from './http/session-cookie.ts'
import type { Visit } from './http/visit.ts'
import { serveConsole } from './operator/console-gate.ts'
import type { WebDeps } from './web-deps.ts'

/** How a request arrived. */
export interface Peer {
  readonly peerAddress: string
  /** For responses that are not pages; absent in tests without a server. */
  readonly exchange?: HttpExchange
}

type Fetch = (request: Request, peer: Peer) => Promise<Response>

/**
 * Creates the app as a function from request to response. Only the routes in the table can be called (contract 20.2).
 */
export function createWebApp(deps: WebDeps, routes: readonly PageRoute[]): Fetch {
  const hono = new Hono<{ Bindings: Peer }>()
  if (deps.admin !== undefined) serveAdmin(deps, deps.admin, hono)
  for (const route of routes) hono.on(route.method, route.path, (context) => serve(deps, context, route))
  // Known paths with another method.
  for (const path of new Set(routes.map((route) => route.path)))
    hono.all(path, async (context) => {
      const response = await serve(deps, context, refusing('wrong_method'))
      response.headers.set('Allow', allowedAt(path, routes))
      return response
    })
  hono.notFound((context) => serve(deps, context, refusing('not_found')))
  return async (request, peer) => hono.fetch(request, peer)
}

/** Serves the admin API, which has its own routes, authentication, and errors. */
function serveAdmin(deps: WebDeps, admin: AdminDeps, hono: Hono<{ Bindings: Peer }>): void {
  const api = new AdminApi(deps, admin)
  const answer = async ({ req, env }: Context<{ Bindings: Peer }>): Promise<Response> => {
    const { headers } = req.raw
    const address = clientAddress(env.peerAddress, headers.get('x-forwarded-for'), deps.trustedProxies)
    const response = await api.answer(req.raw, address, deps.mintRequestId())
    setSecurityHeaders(response.headers, deps.appUrl.startsWith('https:'))
    return response
  }
  hono.all(adminPath, answer)
  hono.all(`${adminPath}/*`, answer)
}

/** The methods of a path, as `Allow` lists them. */
function allowedAt(path: string, routes: readonly PageRoute[]): string {
  return routes
    .flatMap((route) => (route.path !== path ? [] : route.method === 'GET' ? ['GET', 'HEAD'] : ['POST']))
    .join(', ')
}

/** A route that always fails with the given error page. */
function refusing(code: 'wrong_method' | 'not_found'): PageRoute {
  const handle = (): never => {
    throw new PageError(code)
  }
  return { method: 'GET', path: '', access: 'public', handle }
}

async function serve(deps: WebDeps, context: Context<{ Bindings: Peer }>, route: PageRoute): Promise<Response> {
  const requestId = deps.mintRequestId()
  const isHttps = deps.appUrl.startsWith('https:')
  const response = await answer(deps, context, route, requestId)
  setSecurityHeaders(response.headers, isHttps, route.formTargets?.(deps))
  response.headers.set('X-Request-Id', requestId)
  return response
}

async function answer(
  deps: WebDeps,
  context: Context<{ Bindings: Peer }>,
  route: PageRoute,
  requestId: string,
): Promise<Response> {
  const request = context.req.raw
  const { headers } = request
  const { pathname: path, searchParams: query } = new URL(request.url)
  const { peerAddress, exchange } = context.env
  let visit: Visit = {
    deps,
    requestId,
    path,
    params: context.req.param(),
    query,
    headers,
    form: new Form(),
    address: clientAddress(peerAddress, headers.get('x-forwarded-for'), deps.trustedProxies),
    isFromThisMachine: isLoopback(peerAddress) && !headers.has('x-forwarded-for') && !headers.has('forwarded'),
    userAgent: headers.get('user-agent') ?? '',
    signedIn: undefined,
  }
  try {
    if (!isOwnHost(headers.get('host') ?? '', deps.appUrl, deps.mode)) throw new PageError('wrong_host')
    if (route.access === 'webhook') {
      const body = await readBytes(request, maxWebhookBytes)
      return await route.handle({ ...visit, body })
    }
    if (route.access === 'operator' || route.access === 'console_sign_in')
      return await serveConsole(visit, request, route)
    visit = await withSession(visit, request, route)
    if (route.access === 'public') return await route.handle(visit)
    const { signedIn } = visit
    if (route.access === 'script') {
      if (signedIn === undefined) throw new PageError('signed_out')
      if (exchange === undefined) throw new Error('a script without an HTTP exchange')
      return await route.handle({ ...visit, signedIn, exchange })
    }
    return signedIn === undefined ? toSignIn(request.method, path) : await route.handle({ ...visit, signedIn })
  } catch (error) {
    return errorPage(visit, error)
  }
}

/** Adds the session of an account and the submitted form to a visit. */
async function withSession(visit: Visit, request: Request, { method, access }: PageRoute): Promise<Visit> {
  const { deps, headers } = visit
  const token = readSessionToken(headers, 'account', deps.appUrl.startsWith('https:'))
  const signedIn = await readSignedIn(deps, token)
  if (method === 'GET') return { ...visit, signedIn }
  return { ...visit, form: await readOwnForm(visit, request, signedIn, access === 'script'), signedIn }
}

/** Redirects to sign-in and back to this page. */
function toSignIn(method: string, path: string): Response {
  return redirect(method === 'POST' ? '/sign-in' : `/sign-in?next=${encodeURIComponent(path)}`)
}
