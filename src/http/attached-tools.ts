import type { IncomingMessage } from 'node:http'
import type { Json, JsonObject } from '../domain/conversation.ts'
import { invalidRequest, type ServiceError } from '../domain/errors.ts'
import { completionsFormatId, embeddingsFormatId } from '../domain/format-id.ts'
import { fusionPresetNames } from '../domain/fusion-presets.ts'
import { objectOf } from '../domain/json.ts'
import { attachedToolsHeader, fusionToolType } from '../domain/profiles.ts'
import { isArray } from '../formats/fields.ts'
import type { ModelRequest } from '../gateway/ports.ts'
import { rewriteRequest } from '../gateway/rewrite-request.ts'

/** The longest value that is read. */
const maxCharacters = 200
/** The parameters that can stand in the header; all others need the tool itself. */
const choices: Readonly<Record<string, readonly string[]>> = { mode: ['auto', 'always'], preset: fusionPresetNames }

/**
 * The request as if its body had carried the server tool that its caller attaches by `X-Svc-Router-Tools`, because its
 * client cannot put one into what it sends: `svc-router:fusion`, or `svc-router:fusion;mode=always;preset=fast` (decision
 * 32). A tool in the body goes before one in the header. @throws ServiceError `invalid_request` for any other value
 */
export function withStatedTool(
  { headers }: IncomingMessage,
  request: ModelRequest,
): ModelRequest | Promise<ModelRequest> {
  const value = headers[attachedToolsHeader]
  // Clients send a header with everything that they ask: where no tool can be attached it means nothing.
  if (value === undefined || value === '' || !hasTools(request)) return request
  const tool = readTool(value)
  const attached: Json = request.body['tools'] ?? []
  // What is no list is refused by whoever reads the body.
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
  const problem = `The header ${attachedToolsHeader} takes ${fusionToolType}, and behind it ${known.join(' and ')}. Send that, or leave it out.`
  return invalidRequest(attachedToolsHeader, problem)
}
