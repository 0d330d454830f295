import type { IncomingMessage } from 'node:http'
import { invalidRequest, type ServiceError } from '../../domain/errors.ts'
import { completionsFormatId, embeddingsFormatId } from '../../domain/format-id.ts'
import { fusionPresetNames } from '../../domain/fusion-presets.ts'
import { type Json, type JsonObject, objectOf } from '../../domain/json.ts'
import { attachedToolsHeader, fusionToolType } from '../../domain/profiles.ts'
import { isArray } from '../../formats/fields.ts'
import type { ModelRequest } from '../../gateway/ports.ts'
import { rewriteRequest } from '../../gateway/rewrite-request.ts'

/** The longest header value that is parsed, characters. */
const maxCharacters = 200
/** The parameters that the header accepts; all others need the tool itself. */
const choices: Readonly<Record<string, readonly string[]>> = { mode: ['auto', 'always'], preset: fusionPresetNames }

/**
 * Adds the server tool that `X-Svc-Router-Tools` names to the body, for clients that cannot put it there themselves:
 * `svc-router:fusion`, or `svc-router:fusion;mode=always;preset=fast` (decision 32). A tool in the body takes
 * precedence (contract 16.1, 16.2).
 * @throws ServiceError `invalid_request` for any other value
 */
export function withAttachedTool(
  { headers }: IncomingMessage,
  request: ModelRequest,
): ModelRequest | Promise<ModelRequest> {
  const value = headers[attachedToolsHeader]
  // Clients send the header with every request, so it is ignored where no tool can be attached.
  if (value === undefined || value === '' || !hasTools(request)) return request
  const tool = readTool(value)
  const attached: Json = request.body['tools'] ?? []
  // A value that is not a list is rejected by the code that parses the body.
  if (!isArray(attached) || attached.some((one) => objectOf(one)['type'] === fusionToolType)) return request
  return rewriteRequest(request, { tools: [...attached, tool] })
}

function hasTools({ format }: ModelRequest): boolean {
  return format !== embeddingsFormatId && format !== completionsFormatId
}

function readTool(value: string | readonly string[]): JsonObject {
  if (typeof value !== 'string' || value.length > maxCharacters) throw notUnderstood()
  const [type, ...given] = value.split(';').map((part) => part.trim())
  if (type !== fusionToolType) throw notUnderstood()
  const parameters = new Map<string, string>()
  for (const parameter of given) {
    const [, name = '', chosen = ''] = /^(\w+)=(\w+)$/.exec(parameter) ?? []
    const isKnown = Object.hasOwn(choices, name) && choices[name]!.includes(chosen)
    if (!isKnown || parameters.has(name)) throw notUnderstood()
    parameters.set(name, chosen)
  }
  return parameters.size === 0 ? { type } : { type, parameters: Object.fromEntries(parameters) }
}

function notUnderstood(): ServiceError {
  const known = Object.entries(choices).map(([name, values]) => `;${name}= with ${values.join(' or ')}`)
  const problem = `The ${attachedToolsHeader} header must be ${fusionToolType}, optionally followed by ${known.join(' and ')}. Correct or remove it.`
  return invalidRequest(attachedToolsHeader, problem)
}
