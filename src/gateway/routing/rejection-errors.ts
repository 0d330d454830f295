import { ServiceError } from '../../domain/errors.ts'
import { isRefusal, type ViolatedRule, type Need, type UpstreamError } from '../../domain/upstream.ts'
import { unsupported } from '../../formats/assert-translatable.ts'
import type { Backend, ModelRequest } from '../ports.ts'

const needWords: Readonly<Record<Need, { readonly what: string; readonly fix: string }>> = {
  images: {
    what: 'accepts images',
    fix: 'Send the request without images, or use a profile whose models accept them.',
  },
  audio: { what: 'accepts audio', fix: 'Send the request without audio, or use a profile whose models accept it.' },
  files: { what: 'accepts files', fix: 'Send the request without files, or use a profile whose models accept them.' },
  tools: { what: 'supports tools', fix: 'Send the request without tools, or use a profile whose models support them.' },
  structured_outputs: {
    what: 'supports this response format',
    fix: 'Request plain text or another format, or use a profile whose models support it.',
  },
}

/** The broken rules in our own words. Each follows "The provider rejected the content of this request". */
export const ruleWords: Readonly<Record<ViolatedRule, string>> = {
  answer_length: 'the requested answer length exceeds its limit',
  content_filter: 'a content filter blocked the request or its answer',
  image_unreadable: 'it could not read an image',
  schema_invalid: 'a JSON schema is invalid or uses a feature that it does not support',
  tool_results: 'tool calls and their results do not match',
  turn_order: 'the messages are in an order that it does not accept',
  unknown_field: 'it does not support a field',
  unsupported_value: 'a field has a value that it does not support',
}

const needFields: Readonly<Partial<Record<Need, string>>> = { tools: 'tools' }

/** No backend of the profile can do what the request needs. `inputField` is the format's. */
export function notCapable(need: Need, profile: string, inputField: string): ServiceError {
  const { what, fix } = needWords[need]
  return unsupported(needFields[need] ?? inputField, `No backend of ${profile} ${what}. ${fix}`)
}

/**
 * A provider rejected the request's content. The error names only fields that the caller sent, and quotes none of the
 * provider's text.
 */
export function contentRejected(
  error: UpstreamError,
  backend: Pick<Backend, 'id'>,
  { body }: ModelRequest,
  retryCount: number,
): ServiceError {
  const { status, param, rejection } = error
  const isKnown = param !== undefined && Object.hasOwn(body, param.split(/[.[]/)[0] ?? '')
  // A server that answers a caller's mistake with a server error returns no status that is useful to the caller.
  // Clients take the 403 of a content filter for a problem with their key.
  const shown = status !== undefined && status < 500 && !isRefusal(error) ? status : undefined
  const rule = rejection?.rule === undefined ? '' : `: ${ruleWords[rejection.rule]}`
  return new ServiceError('content_rejected', {
    upstream: backend.id,
    retryCount,
    ...(shown === undefined ? {} : { status: shown }),
    ...(isKnown ? { param } : {}),
    words: { said: status === undefined ? '' : ` (HTTP status ${status})`, rule },
  })
}
