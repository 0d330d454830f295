import { type Json, type JsonObject, isObject } from '../../domain/json.ts'
import { isArray } from '../fields.ts'
import { fieldOfPath } from './optional-fields.ts'

/** Rejections state the problem within this length; longer messages repeat the request. */
const maxMessageChars = 600
const maxDetails = 20
/** Entries of a path into the request that are read. */
const maxPath = 16

/** A provider's rejection, independent of its server's shape. Its message never leaves `formats/`. */
export interface RejectionBody {
  /** `code`, or `type` if there is no code. */
  readonly code: Json | undefined
  readonly type: Json | undefined
  readonly param: Json | undefined
  /** The message in lower case, at most 600 characters. */
  readonly message: string
  /** Request fields that validation reported as unknown (FastAPI's `extra_forbidden`). */
  readonly unknownFields: readonly string[]
  /** The context window if the server sends it as a separate number (`n_ctx`). */
  readonly windowTokens: number | undefined
  /** The error object, for code that reads one vendor's shape. */
  readonly error: JsonObject
}

/** Parses a rejection's body; undefined if it is not JSON, or has none of the known shapes. */
export function readRejection(body: string): RejectionBody | undefined {
  let parsed: Json
  try {
    parsed = JSON.parse(body) as Json
  } catch {
    // A proxy's HTML page: its status is enough.
    return undefined
  }
  // Google wraps the errors of some streams in a list of one.
  const root = isArray(parsed) ? parsed[0] : parsed
  return isObject(root) ? readError(root['error'] ?? root) : readError(root)
}

/** The same for an error inside an answer. */
export function readError(error: Json | undefined): RejectionBody | undefined {
  if (typeof error === 'string') return describe({ message: error })
  return isObject(error) ? describe(error) : undefined
}

function describe(error: JsonObject): RejectionBody {
  const { code, type, param, detail } = error
  const details = isArray(detail) ? detail.filter(isObject).slice(0, maxDetails) : []
  // xAI puts the message into `error`.
  const own = error['message'] ?? (typeof error['error'] === 'string' ? error['error'] : undefined)
  const message = own ?? (typeof detail === 'string' ? detail : details[0]?.['msg'])
  const nested = isObject(message) ? message['detail'] : undefined
  // Mistral puts the validation errors into `message`.
  const found = isArray(nested) ? nested.filter(isObject).slice(0, maxDetails) : details
  const text = typeof message === 'string' ? message : found[0]?.['msg']
  const window = error['n_ctx']
  return {
    code: code ?? type,
    type,
    param,
    message: typeof text === 'string' ? text.slice(0, maxMessageChars).toLowerCase() : '',
    unknownFields: found.flatMap((entry) => (entry['type'] === 'extra_forbidden' ? fieldAt(entry['loc']) : [])),
    windowTokens: typeof window === 'number' && Number.isSafeInteger(window) && window > 0 ? window : undefined,
    error,
  }
}

/** The request field of a FastAPI location, `["body", "logprobs"]`. */
function fieldAt(location: Json | undefined): string[] {
  if (!isArray(location)) return []
  const path = (location[0] === 'body' ? location.slice(1, maxPath) : location.slice(0, maxPath)).map(String)
  const field = fieldOfPath(path)
  return field === undefined ? [] : [field]
}
