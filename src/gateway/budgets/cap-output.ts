import type { Conversation } from '../../domain/conversation.ts'
import type { Json } from '../../domain/json.ts'
import type { ClientFormatId, Formats } from '../../formats/format.ts'
import type { ModelRequest } from '../ports.ts'
import { rewriteRequest } from '../rewrite-request.ts'

/** The members that set a format's output limit. Of chat's two names, backends that want the newer one get that. */
const limitMembers: Readonly<Record<ClientFormatId, (limit: number) => Readonly<Record<string, Json | undefined>>>> = {
  'openai-chat': (limit) => ({ max_tokens: limit, max_completion_tokens: undefined }),
  'openai-completions': (limit) => ({ max_tokens: limit }),
  'openai-responses': (limit) => ({ max_output_tokens: limit }),
  'anthropic-messages': (limit) => ({ max_tokens: limit }),
  'openai-embeddings': () => ({}),
}

/** A request with another output limit, so that its backends cannot write more than is held for it (contract 46.4). */
export async function withOutputLimit(
  request: ModelRequest,
  limit: number,
  formats: Formats,
): Promise<{ readonly request: ModelRequest; readonly conversation: Conversation }> {
  const limited = await rewriteRequest(request, limitMembers[request.format](limit))
  return { request: limited, conversation: formats(limited.format).readRequest(limited.body) }
}
