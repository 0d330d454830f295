import type { ServerResponse } from 'node:http'
import { keyPrefix } from '../domain/keys.ts'
import type { ServiceError } from '../domain/errors.ts'
import { errorMessage } from '../domain/error-text.ts'
import type { Links } from '../domain/links.ts'
import type { UsageSignals } from '../domain/usage.ts'
import type { ClientManners } from '../formats/manners.ts'
import { reliabilityHeaders, usageHeaders, type HeaderList } from './signals.ts'

export interface RefusalContext {
  readonly requestId: string
  readonly links: Links
  /** Conventions of the clients of this path. */
  readonly manners: ClientManners
  readonly nowMs: number
  /** The account's counters, if the caller is known. */
  readonly signals: UsageSignals | undefined
  /** Whether this answers a model request, whose response always includes the retry count. */
  readonly model: boolean
  /** Whether to close the connection: unread bytes of the request may still arrive. */
  readonly close: boolean
}

/** The body of an error response (contract 4.1). Clients show only `message`. */
export function refusalBody(
  error: ServiceError,
  { requestId, links, manners }: Pick<RefusalContext, 'requestId' | 'links' | 'manners'>,
): string {
  const { entry, facts, code } = error
  const { param = null, resetsAt, attempts, passedBy } = facts
  const { type, source, retryable } = entry
  const signals = {
    ...(resetsAt === undefined ? {} : { resets_at: resetsAt }),
    ...(attempts === undefined ? {} : { attempts }),
    ...(passedBy === undefined || passedBy.length === 0 ? {} : { passed_by: passedBy }),
    ...signalFields(error, links),
  }
  const message = errorMessage(error, links)
  return JSON.stringify(manners.writeRefusal({ message, type, param, code, source, retryable, requestId, signals }))
}

/** Writes an error response: the only place where an exception becomes a response (contract 35.5). */
export function writeRefusal(response: ServerResponse, error: ServiceError, context: RefusalContext): void {
  const body = Buffer.from(refusalBody(error, context))
  const headers: HeaderList = [
    'Content-Type',
    'application/json; charset=utf-8',
    'Content-Length',
    String(body.length),
    'Cache-Control',
    'no-store',
    'X-Content-Type-Options',
    'nosniff',
    ...refusalHeaders(error, context),
  ]
  if (error.code === 'method_not_allowed') headers.push('Allow', String(error.facts.words?.['allowed']))
  if (context.close) headers.push('Connection', 'close')
  response.writeHead(error.status, headers)
  response.end(body)
}

/** Headers about the error and the account, however they reach the caller (contract 4.3, 5.5, 5.6). */
export function refusalHeaders(error: ServiceError, context: Omit<RefusalContext, 'close' | 'links'>): HeaderList {
  const headers: HeaderList = ['X-Request-Id', context.requestId, 'X-Should-Retry', String(error.entry.retryable)]
  const { requestIdHeader } = context.manners
  if (requestIdHeader !== undefined) headers.push(requestIdHeader, context.requestId)
  if (error.entry.signals === 'authentication') headers.push('WWW-Authenticate', challenge(error))
  const retryAfter = error.facts.retryAfterSeconds
  if (retryAfter !== undefined) headers.push('Retry-After', String(retryAfter))
  const { window } = error.facts
  const limiter = window === undefined ? undefined : { ...window, remaining: 0 }
  if (context.signals !== undefined) headers.push(...usageHeaders(context.signals, context.nowMs, limiter))
  if (context.model) {
    const { upstream, retryCount = 0 } = error.facts
    headers.push(...reliabilityHeaders({ upstream, retryCount, simulated: false }))
  }
  return headers
}

/**
 * `error=` says that a credential was sent and is invalid; without a credential it is omitted (RFC 6750, contract
 * 4.4).
 */
function challenge({ code }: ServiceError): string {
  const realm = 'Bearer realm="svc-router"'
  return code === 'key_missing' ? realm : `${realm}, error="invalid_token"`
}

/** The header fields of contract 4.4 and 4.5 for this kind of error. */
function signalFields({ entry }: ServiceError, links: Links): Record<string, string> {
  if (entry.signals === 'authentication') {
    const { accountUrl, accountSetupUrl, managedAccessUrl, keyRecoveryUrl } = links
    const primaryActionUrl = links[entry.action ?? 'accountUrl']
    return { apiKeyPrefix: keyPrefix, accountUrl, accountSetupUrl, primaryActionUrl, managedAccessUrl, keyRecoveryUrl }
  }
  if (entry.signals === 'billing') {
    const { upgradeUrl, billingUrl, supportUrl } = links
    return { upgradeUrl, billingUrl, supportUrl }
  }
  return {}
}
