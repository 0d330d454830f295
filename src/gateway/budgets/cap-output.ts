import type { Conversation } from '../../domain/conversation.ts'
import type { Formats } from '../../formats/format.ts'
import type { CallSpending, ModelRequest } from '../ports.ts'
import { rewriteRequest } from '../rewrite-request.ts'

/** A request with another output limit, so that its backends cannot write more than is held for it (contract 46.4). */
export async function withOutputLimit(
  request: ModelRequest,
  limit: number,
  formats: Formats,
): Promise<{ readonly request: ModelRequest; readonly conversation: Conversation }> {
  const format = formats(request.format)
  const limited = await rewriteRequest(request, format.outputLimit?.members(limit) ?? {})
  return { request: limited, conversation: format.readRequest(limited.body) }
}

/** No call of a request with budgets may answer longer than is held for it (contract 46.3). */
export function withLimit(conversation: Conversation, spending: CallSpending | undefined): Conversation {
  if (spending === undefined) return conversation
  const { maxOutputTokens = Infinity } = conversation.sampling
  const limit = Math.min(maxOutputTokens, spending.outputTokens)
  return { ...conversation, sampling: { ...conversation.sampling, maxOutputTokens: limit } }
}
