import { adminTokenPrefix, authenticateAdmin } from '../../accounts/admin/admin-tokens.ts'
import { adminOperations, type AdminOperation, type AdminOperationId } from '../../api-docs/admin-operations.ts'
import type { AdminToken } from '../../domain/admin-tokens.ts'
import { parseStrictJson } from '../../domain/json-text.ts'
import { isObject, type JsonObject } from '../../domain/json.ts'
import { keyPrefix } from '../../domain/keys.ts'
import { FairShare } from '../../runtime/fair-share.ts'
import { isUnsafe } from '../../runtime/safe-text.ts'
import { isOwnHost } from '../http/hosts.ts'
import { readBytes } from '../http/read-form.ts'
import type { WebDeps } from '../web-deps.ts'
import { accountHandlers } from './account-handlers.ts'
import type { AdminCall, AdminHandler } from './admin-call.ts'
import type { AdminDeps } from './admin-deps.ts'
import { AdminError, adminErrorResponse } from './admin-error.ts'
import { budgetHandlers } from './budget-handlers.ts'
import { settingHandlers } from './setting-handlers.ts'

/** The largest body (contract 38.13). */
const maxBodyBytes = 1024 * 1024
/**
 * The maximum number of concurrent requests, because each may hold a body and read all accounts. One token may have four of
 * them, so that its slow bodies do not block other tokens.
 */
const maxRunning = 5

/** How many unknown fields of a body an error names. */
const maxUnknown = 20

/** Where the admin API is. */
export const adminPath = '/admin/v1'

const handlers: Readonly<Record<AdminOperationId, AdminHandler>> = {
  about: ({ token }) =>
    Promise.resolve({
      object: 'admin_token',
      id: token.id,
      name: token.name,
      scope: token.scope,
      expires_at: new Date(token.expiresAtMs).toISOString(),
    }),
  openapi: ({ admin }) => Promise.resolve(admin.openApi),
  ...accountHandlers,
  ...budgetHandlers,
  ...settingHandlers,
}

interface Route {
  readonly operation: AdminOperation
  readonly handle: AdminHandler
  readonly shape: RegExp
}

/** The id of a profile may contain a slash. */
const routes: readonly Route[] = Object.entries(adminOperations).map(([id, operation]) => ({
  operation,
  handle: handlers[id as AdminOperationId],
  shape: new RegExp(
    `^${operation.path.replace('{id}', operation.path.includes('/profiles/') ? '([^/]+(?:/[^/]+)?)' : '([^/]+)')}$`,
  ),
}))

/** Answers requests to the admin API (contract 38.11). */
export class AdminApi {
  readonly #deps: WebDeps
  readonly #admin: AdminDeps
  readonly #running = new FairShare(maxRunning)

  constructor(deps: WebDeps, admin: AdminDeps) {
    this.#deps = deps
    this.#admin = admin
  }

  /** Never throws. `address` is the client's. */
  async answer(request: Request, address: string, requestId: string): Promise<Response> {
    const headers = { 'X-Request-Id': requestId }
    try {
      const body = await this.#answer(request, address)
      return Response.json(body, { headers })
    } catch (error) {
      const response = adminErrorResponse(this.#deps, requestId, error)
      response.headers.set('X-Request-Id', requestId)
      return response
    }
  }

  async #answer(request: Request, address: string): Promise<object> {
    const { appUrl, mode } = this.#deps
    if (!isOwnHost(request.headers.get('host') ?? '', appUrl, mode)) throw new AdminError('wrong_host')
    const token = await this.#authenticate(request.headers.get('authorization') ?? '', address)
    this.#admin.limiters.requests.take(token.id)
    const { route, id } = routeOf(request)
    if (route.operation.scope === 'write' && token.scope !== 'write') throw new AdminError('scope_missing')
    if (!this.#running.take(token.id)) throw new AdminError('too_many')
    try {
      return await route.handle(await this.#callOf(request, route, token, id))
    } finally {
      this.#running.give(token.id)
    }
  }

  async #authenticate(authorization: string, address: string): Promise<AdminToken> {
    const [, given] = /^bearer +(\S+) *$/i.exec(authorization) ?? []
    const token = given === undefined ? undefined : await authenticateAdmin(this.#admin.tokens, given)
    if (token !== undefined) return token
    this.#admin.limiters.failures.take(address)
    if (given === undefined) throw new AdminError('token_missing')
    const isKey = given.startsWith(keyPrefix) && !given.startsWith(adminTokenPrefix)
    throw new AdminError(isKey ? 'account_key' : 'token_invalid')
  }

  async #callOf(request: Request, { operation }: Route, token: AdminToken, id: string): Promise<AdminCall> {
    const body = operation.body === undefined ? {} : await readBody(request, operation)
    const control = { ...this.#admin.control, actor: { kind: 'token', tokenId: token.id } } as const
    const { searchParams: query } = new URL(request.url)
    return { deps: this.#deps, admin: this.#admin, token, control, id, query, body }
  }
}

function routeOf(request: Request): { readonly route: Route; readonly id: string } {
  const { pathname } = new URL(request.url)
  const named = routes.filter(({ shape }) => shape.test(pathname))
  const route = named.find(({ operation }) => operation.method === request.method)
  if (route === undefined) throw new AdminError(named.length === 0 ? 'not_found' : 'method_not_allowed')
  const [, encoded = ''] = route.shape.exec(pathname) ?? []
  const id = decoded(encoded)
  // PostgreSQL rejects a query for a text with a zero byte.
  if (id === undefined || isUnsafe(id)) throw new AdminError('not_found')
  return { route, id }
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}

async function readBody(request: Request, { body }: AdminOperation): Promise<JsonObject> {
  const bytes = await readBytes(request, maxBodyBytes)
  if (bytes.byteLength === 0 && body?.required.length === 0 && body.isSetting !== true) return {}
  const type = (request.headers.get('content-type') ?? '').split(';')[0]?.trim().toLowerCase()
  if (type !== 'application/json') throw new AdminError('wrong_type')
  const parsed = parseStrictJson(Buffer.from(bytes).toString('utf8'))
  if ('fault' in parsed) throw new AdminError('body_invalid', [faultOf(parsed.fault, parsed.path)])
  const { value } = parsed
  if (!isObject(value))
    throw new AdminError('body_invalid', [{ path: [], what: 'it must be an object', fix: 'send {…}' }])
  const known = Object.keys(body?.fields ?? {})
  const unknown =
    body?.isSetting === true
      ? []
      : Object.keys(value)
          .filter((name) => !known.includes(name))
          .slice(0, maxUnknown)
  const missing = (body?.required ?? []).filter((name) => !Object.hasOwn(value, name))
  const problems = [
    ...unknown.map((name) => ({
      path: [name.slice(0, 64)],
      what: 'this field is unknown',
      fix: `use ${known.join(', ')}`,
    })),
    ...missing.map((name) => ({ path: [name], what: 'this field is missing', fix: `send "${name}"` })),
  ]
  if (problems.length > 0) throw new AdminError('body_invalid', problems)
  return value
}

const faults = {
  invalid: 'this is not valid JSON',
  repeated: 'this name appears twice',
  deep: 'this is nested too deeply',
} as const

function faultOf(fault: keyof typeof faults, path: readonly (string | number)[]) {
  return { path: path.map(String), what: faults[fault], fix: 'correct it, and send it again' }
}
