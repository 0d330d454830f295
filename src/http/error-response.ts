import type { ServerResponse } from 'node:http'
import type { UsageSignals } from '../domain/account-meter.ts'
import { plainState } from '../domain/budget-text.ts'
import { errorMessage } from '../domain/error-message.ts'
import type { BudgetFacts, ServiceError } from '../domain/errors.ts'
import { keyPrefix } from '../domain/keys.ts'
import type { Links } from '../domain/links.ts'
import type { ClientConventions } from '../formats/client-conventions.ts'
import { reliabilityHeaders, usageHeaders, type HeaderList } from './usage-headers.ts'

export interface ErrorResponseContext {
  readonly requestId: string
  readonly links: Links
  /** Conventions of the clients of this path. */
  readonly conventions: ClientConventions
  readonly nowMs: number
  /** The account's counters, if the caller is known. */
  readonly signals: UsageSignals | undefined
  /** Whether this answers a model request, whose response always includes the retry count. */
  readonly model: boolean
  /** Whether to close the connection: unread bytes of the request may still arrive. */
  readonly close: boolean
}

/** The body of an error response (contract 4.1). Clients show only `message`. */
export function errorBody(
  error: ServiceError,
  { requestId, links, conventions }: Pick<ErrorResponseContext, 'requestId' | 'links' | 'conventions'>,
): string {
  const { entry, facts, code } = error
  const { param = null, resetsAt, attempts, passedBy, budget } = facts
  const { type, source, retryable } = entry
  const signals = {
    ...(resetsAt === undefined ? {} : { resets_at: resetsAt }),
    ...(budget === undefined ? {} : budgetFields(budget)),
    ...(attempts === undefined ? {} : { attempts }),
    ...(passedBy === undefined || passedBy.length === 0 ? {} : { passed_by: passedBy }),
    ...signalFields(error, links),
  }
  const message = errorMessage(error, links)
  return JSON.stringify(conventions.writeError({ message, type, param, code, source, retryable, requestId, signals }))
}

/** Writes an error response: the only place where an exception becomes a response (contract 35.5). */
export function writeErrorResponse(response: ServerResponse, error: ServiceError, context: ErrorResponseContext): void {
  const body = Buffer.from(errorBody(error, context))
  const headers: HeaderList = [
    'Content-Type',
    'application/json; charset=utf-8',
    'Content-Length',
    String(body.length),
    'Cache-Control',
    'no-store',
    'X-Content-Type-Options',
    'nosniff',
    ...errorHeaders(error, context),
  ]
  if (error.code === 'method_not_allowed') headers.push('Allow', String(error.facts.words?.['allow']))
  if (context.close) headers.push('Connection', 'close')
  response.writeHead(error.status, headers)
  response.end(body)
}

/** Headers about the error and the account, however they reach the caller (contract 4.3, 5.5, 5.6). */
export function errorHeaders(error: ServiceError, context: Omit<ErrorResponseContext, 'close' | 'links'>): HeaderList {
  const headers: HeaderList = ['X-Request-Id', context.requestId, 'X-Should-Retry', String(error.entry.retryable)]
  const { requestIdHeader } = context.conventions
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

/** The state of the budget that refused the request (contract 46.6). */
function budgetFields(budget: BudgetFacts) {
  return { resets_at: Math.ceil(budget.resetsAtMs / 1000), budget: plainState(budget, budget) }
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
