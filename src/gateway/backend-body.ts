import type { Conversation } from '../domain/conversation.ts'
import { ServiceError } from '../domain/errors.ts'
import type { ClientFormatId, FormatId, Formats } from '../formats/format.ts'
import { patchMembers } from '../formats/json-scan.ts'
import { unsupported } from '../formats/translatable.ts'
import { relayChanges, type RelayRules, type RequestChanges } from '../formats/relay.ts'
import { mayBeSealed, unsealConversation, unsealMember } from '../formats/sealed.ts'
import type { Backend, ModelRequest } from './ports.ts'

export interface BodyParts {
  readonly formats: Formats
  readonly relays: (id: ClientFormatId) => RelayRules
}

/** Relays nothing: for requests that are not sent on as their caller wrote them. */
export const translatedOnly: BodyParts['relays'] = () => ({ fits: () => false })

/** A body that was written before the first attempt, for one backend. */
export interface WrittenBody {
  readonly backend: Backend
  readonly body: Uint8Array | string
}

/** What a backend is sent. @throws ServiceError where its format cannot say what was asked */
export function writeBody(
  backend: Backend,
  request: ModelRequest,
  conversation: Conversation,
  { formats, relays }: BodyParts,
): Uint8Array | string {
  const { bytes, members, body, format } = request
  const { model, dialect, issuer } = backend
  const target = { model, stream: conversation.stream, dialect }
  const relay = relayFor(backend, request, relays)
  if (relay !== undefined) {
    const changes = relayChanges(relay, body, conversation, target)
    return patchMembers(bytes, members, withoutForeignSeals(relay, request, changes, issuer))
  }
  try {
    return JSON.stringify(formats(backend.format).writeRequest(unsealConversation(conversation, issuer), target))
  } catch (error) {
    throw inCallersWords(error, formats(format).fieldNames)
  }
}

/** Writers name a field as their own format does: callers read the name under which they sent it (contract 3.3). */
function inCallersWords(error: unknown, names: Readonly<Record<string, string>> = {}): unknown {
  if (!(error instanceof ServiceError)) return error
  const param = names[error.facts.param ?? '']
  return param === undefined ? error : new ServiceError(error.code, { ...error.facts, param })
}

/** What would be kept at a provider, where no other backend and no other request could find it. */
const keptElsewhere = ['background', 'conversation']

/** Refuses what is not served whichever backend answers. @throws ServiceError `unsupported_parameter` */
export function assertServed({ hints }: Conversation): void {
  const field = hints.untranslatable?.find((name) => keptElsewhere.includes(name))
  if (field !== undefined) throw unsupported(field, `${field} is not served here. Send the request without it.`)
}

/** The rules for passing a request on to that backend as it is; undefined where it is translated. */
export function relayFor(
  backend: Backend,
  { format, body }: ModelRequest,
  relays: BodyParts['relays'],
): RelayRules | undefined {
  if (backend.format !== format) return undefined
  const rules = relays(format)
  return rules.fits?.(body, backend.dialect) === false ? undefined : rules
}

/** What only another backend can read does not go to this one, after a failover as little as in a later request (wire 7.14). */
function withoutForeignSeals(
  { sealing }: RelayRules,
  { bytes, members }: ModelRequest,
  changes: RequestChanges,
  issuer: string,
): RequestChanges {
  if (sealing === undefined || !mayBeSealed(sealing, bytes)) return changes
  const place = members.find(({ key }) => key === sealing.member)
  const json = changes[sealing.member] ?? (place && bytes.toString('utf8', place.valueStart, place.valueEnd))
  return json === undefined ? changes : { ...changes, [sealing.member]: unsealMember(sealing, json, issuer) }
}

/**
 * Refuses what no backend could be asked, before it is admitted: such a request counts nothing (contract 4.3). What had
 * to be written to know that is given back, for the attempt to use; undefined where a backend can be relayed to.
 * @throws ServiceError `unsupported_parameter`, `previous_response_not_found`, `item_not_found`, `invalid_request`
 */
export function assertSayable(
  request: ModelRequest,
  conversation: Conversation,
  backends: readonly Backend[],
  parts: BodyParts,
): WrittenBody | undefined {
  if (backends.some((backend) => relayFor(backend, request, parts.relays) !== undefined)) return undefined
  const tried = new Set<FormatId>()
  let refusal: ServiceError | undefined
  for (const backend of backends) {
    // Whether a request can be said is decided by the format alone.
    if (tried.has(backend.format)) continue
    tried.add(backend.format)
    try {
      return { backend, body: writeBody(backend, request, conversation, parts) }
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error
      refusal ??= error
    }
  }
  if (refusal !== undefined) throw refusal
  return undefined
}
