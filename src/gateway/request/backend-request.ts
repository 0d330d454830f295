import type { AssistantTurn, Conversation } from '../../domain/conversation.ts'
import { ServiceError } from '../../domain/errors.ts'
import { unsupported } from '../../formats/assert-translatable.ts'
import { insertionsOf } from '../../formats/cache/insert-marks.ts'
import { withStableTools } from '../../formats/cache/stable-tools.ts'
import { holdsEncrypted, unmarkConversation, unmarkMember } from '../../formats/encrypted-reasoning.ts'
import type { ClientFormatId, Dialect, Formats, WriteTarget } from '../../formats/format.ts'
import { areTooComplex } from '../../formats/json-limits.ts'
import { type JsonInsertion, memberText, patchMembers } from '../../formats/json-scan.ts'
import { withRejectedFields } from '../../formats/rejections/optional-fields.ts'
import { relayChanges, type RelayRules, type RequestChanges } from '../../formats/relay.ts'
import { assertManagedScope } from '../auth/operator-scope.ts'
import type { CacheContext } from '../cache/cache-context.ts'
import { cacheRequestFor } from '../cache/provider-cache.ts'
import type { Backend, ModelRequest } from '../ports.ts'
import type { LearnedLimits } from '../routing/learned-limits.ts'

/** Longer bodies are encoded once, and their memory is freed after the answer (decision 67). */
const largeText = 32 * 1024

export interface BackendRequestDeps {
  readonly formats: Formats
  readonly learned: LearnedLimits
  readonly relays: (id: ClientFormatId) => RelayRules
}

/** Disables relaying: for requests that are not forwarded as the caller wrote them. */
export const translatedOnly: BackendRequestDeps['relays'] = () => ({ fits: () => false })

/** The request body for one endpoint of a backend. */
export interface BackendRequestBody {
  readonly backend: Backend
  readonly body: Uint8Array | string
}

/** Writes one request in the format of each backend. */
export interface RequestWriter {
  /** A backend's endpoints, preferred first; never empty. */
  endpointsOf(backend: Backend): readonly Backend[]
  /**
   * The body for an endpoint, without the optional fields in `without`.
   * @throws ServiceError if the endpoint's format cannot express the request
   */
  write(endpoint: Backend, without?: readonly string[]): Uint8Array | string
  /** Whether the caller's own request contains a member with this name, at any depth, unless it is written with escapes. */
  hasOwn?(name: string): boolean
}

/** For a caller's request: relayed if an endpoint speaks its format, otherwise translated (contract 7.16). */
export class CallerRequestWriter implements RequestWriter {
  readonly #request: ModelRequest
  readonly #conversation: Conversation
  readonly #deps: BackendRequestDeps

  constructor(request: ModelRequest, conversation: Conversation, deps: BackendRequestDeps) {
    this.#request = request
    this.#conversation = conversation
    this.#deps = deps
  }

  endpointsOf(backend: Backend): readonly Backend[] {
    const endpoints = knownEndpoints(backend, this.#deps.learned)
    if (endpoints.length === 1) return endpoints
    const { relays } = this.#deps
    const own = endpoints.find((endpoint) => relayRulesFor(endpoint, this.#request, relays) !== undefined)
    return own === undefined ? endpoints : [own, ...endpoints.filter((endpoint) => endpoint !== own)]
  }

  hasOwn(name: string): boolean {
    return this.#request.bytes.includes(`"${name}"`)
  }

  write(endpoint: Backend, without?: readonly string[]): Uint8Array | string {
    return writeBody(endpoint, this.#request, this.#conversation, this.#deps, without)
  }
}

/** For a request that the service makes itself. */
export function translatedWriter(
  conversation: Conversation,
  parts: Pick<BackendRequestDeps, 'formats' | 'learned'>,
  cache?: CacheContext,
): RequestWriter {
  return {
    endpointsOf: (backend) => knownEndpoints(backend, parts.learned),
    write: (endpoint, without) => writeTranslated(endpoint, conversation, parts, { without, cache }),
  }
}

/**
 * The body for the first endpoint of a backend that can express the request, except `skipped`.
 * @throws ServiceError the preferred endpoint's reason, if no endpoint can
 */
export function writeFor(backend: Backend, writer: RequestWriter, skipped?: Backend): BackendRequestBody {
  let firstError: unknown
  for (const endpoint of writer.endpointsOf(backend)) {
    if (endpoint === skipped) continue
    try {
      return { backend: endpoint, body: writer.write(endpoint) }
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error
      firstError ??= error
    }
  }
  throw firstError
}

/** A backend's endpoints except those known to be missing; all of them if none would be left. */
function knownEndpoints(backend: Backend, learned: LearnedLimits): readonly Backend[] {
  if (backend.otherEndpoints === undefined) return [backend]
  const all = [backend, ...backend.otherEndpoints]
  const known = all.filter((endpoint) => !learned.isMissing(endpoint))
  return known.length === 0 ? all : known
}

/**
 * The body for an endpoint, without the optional fields in `without`.
 * @throws ServiceError if the endpoint's format cannot express the request
 */
export function writeBody(
  backend: Backend,
  request: ModelRequest,
  conversation: Conversation,
  deps: BackendRequestDeps,
  without?: readonly string[],
): Uint8Array | string {
  const { body, format, cache } = request
  const relay = relayRulesFor(backend, request, deps.relays)
  if (relay !== undefined) {
    if (backend.isManaged) assertManagedScope(body)
    const target = targetFor(backend, conversation, deps.learned, { without, cache })
    const added = relay.marks?.(body, request.bytes.length, target) ?? []
    const marks = added.length === 0 ? [] : insertionsOf(request.bytes, request.members, added)
    const changes = relayChanges(relay, body, conversation, target)
    const all = withoutForeignSeals(relay, request, { changes, marks, issuer: backend.issuer })
    return patchMembers(request.bytes, request.members, all, marks)
  }
  try {
    return writeTranslated(backend, conversation, deps, { without, cache })
  } catch (error) {
    throw inCallersWords(error, deps.formats(format).fieldNames)
  }
}

interface WriteOptions {
  /** Optional fields to leave out. */
  readonly without?: readonly string[] | undefined
  /** What the gateway knows about caching for the request; absent for the service's own requests. */
  readonly cache?: CacheContext | undefined
}

function writeTranslated(
  backend: Backend,
  conversation: Conversation,
  { formats, learned }: Pick<BackendRequestDeps, 'formats' | 'learned'>,
  options: WriteOptions,
): Uint8Array | string {
  const { issuer, format } = backend
  const provider = formats(format)
  if (provider.parsesArguments === true) assertSimpleCalls(conversation)
  const target = targetFor(backend, conversation, learned, options)
  const written = provider.writeRequest(withStableTools(unmarkConversation(conversation, issuer)), target)
  if (backend.isManaged) assertManagedScope(written)
  const text = JSON.stringify(written)
  return text.length < largeText ? text : Buffer.from(text)
}

/** The arguments of all tool calls have the limits of a body. @throws ServiceError `invalid_request` (contract 30.8) */
function assertSimpleCalls({ turns }: Conversation): void {
  const texts = turns.flatMap((turn) => (turn.role === 'assistant' ? argumentsIn(turn) : []))
  if (areTooComplex(texts))
    throw new ServiceError('invalid_request', {
      words: { problem: 'The arguments of the tool calls are too complex. Send simpler ones.' },
    })
}

function argumentsIn({ parts }: AssistantTurn): readonly string[] {
  return parts.flatMap((part) => (part.type === 'call' && part.kind === 'function' ? [part.arguments] : []))
}

function targetFor(
  backend: Backend,
  { stream, hints }: Conversation,
  learned: LearnedLimits,
  { without, cache }: WriteOptions,
): WriteTarget {
  const dialect = dialectFor(backend, learned, without)
  const { model } = backend
  return { model, stream, dialect, cache: cacheRequestFor(backend, dialect, hints.promptCacheKey, cache) }
}

function dialectFor(backend: Backend, learned: LearnedLimits, without: readonly string[] = []): Dialect {
  const dialect = learned.dialectOf(backend)
  return without.length === 0 ? dialect : withRejectedFields(dialect, without)
}

/** Writers name a field as their own format does; the error names it as the caller sent it (contract 2.22). */
function inCallersWords(error: unknown, names: Readonly<Record<string, string>> = {}): unknown {
  if (!(error instanceof ServiceError)) return error
  const param = names[error.facts.param ?? '']
  return param === undefined ? error : new ServiceError(error.code, { ...error.facts, param })
}

/** Rejects features that this service does not support on any backend. @throws ServiceError `unsupported_parameter` */
export function assertSupported({ hints }: Conversation): void {
  // A background response would run at one provider, where no other backend could find it (contract 11.19).
  if (hints.untranslatable?.includes('background') === true) {
    throw unsupported(
      'background',
      'background is not supported over WebSockets, or if the operator has set retention.retries to 0d. Send the request without background.',
    )
  }
}

/** The rules for relaying a request to a backend unchanged; undefined if it must be translated. */
export function relayRulesFor(
  backend: Backend,
  { format, body }: ModelRequest,
  relays: BackendRequestDeps['relays'],
): RelayRules | undefined {
  if (backend.format !== format) return undefined
  const rules = relays(format)
  return rules.fits?.(body, backend.dialect) === false ? undefined : rules
}

interface RelayedChanges {
  readonly changes: RequestChanges
  readonly marks: readonly JsonInsertion[]
  /** Of the backend. */
  readonly issuer: string
}

/**
 * Strips encrypted reasoning that only another backend can read, after a failover and in later requests alike
 * (contract 11.8).
 */
function withoutForeignSeals(
  { encryptedReasoning }: RelayRules,
  { body, bytes, members }: ModelRequest,
  { changes, marks, issuer }: RelayedChanges,
): RequestChanges {
  if (encryptedReasoning === undefined) return changes
  if (!holdsEncrypted(encryptedReasoning, body[encryptedReasoning.member], bytes)) return changes
  const member = members.find(({ key }) => key === encryptedReasoning.member)
  const json = changes[encryptedReasoning.member] ?? (member && memberText(bytes, member, marks))
  return json === undefined
    ? changes
    : { ...changes, [encryptedReasoning.member]: unmarkMember(encryptedReasoning, json, issuer) }
}

/**
 * Rejects a request that no backend can express before it is admitted, so it counts toward nothing (contract 6.17,
 * 11.4). Returns the body written for this check so that the attempt can reuse it; undefined if a backend can be
 * relayed to.
 * @throws ServiceError `unsupported_parameter`, `previous_response_not_found`, `item_not_found`, `invalid_request`
 */
export function assertEncodable(
  request: ModelRequest,
  conversation: Conversation,
  backends: readonly Backend[],
  deps: BackendRequestDeps,
): BackendRequestBody | undefined {
  if (backends.every(({ isManaged }) => isManaged)) assertManagedScope(request.body)
  for (const backend of backends) if (canRelay(backend, request, deps)) return undefined
  const writer = new CallerRequestWriter(request, conversation, deps)
  const tried = new Set<string>()
  let firstError: ServiceError | undefined
  for (const backend of backends) {
    // Whether a request can be expressed depends only on the formats.
    const formats = formatsOf(backend)
    if (tried.has(formats)) continue
    tried.add(formats)
    try {
      return writeFor(backend, writer)
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error
      firstError ??= error
    }
  }
  if (firstError !== undefined) throw firstError
  return undefined
}

function canRelay(backend: Backend, request: ModelRequest, { relays }: BackendRequestDeps): boolean {
  if (relayRulesFor(backend, request, relays) !== undefined) return true
  return backend.otherEndpoints?.some((other) => relayRulesFor(other, request, relays) !== undefined) === true
}

/** The formats of a backend's endpoints, in its order. */
export function formatsOf({ format, otherEndpoints }: Backend): string {
  return otherEndpoints === undefined ? format : [format, ...otherEndpoints.map((other) => other.format)].join()
}
