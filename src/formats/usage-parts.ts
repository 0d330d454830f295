import type { Usage, UsagePart } from '../domain/conversation.ts'
import type { JsonObject } from '../domain/json.ts'

/** The extra usage fields of an answer made of several calls: one object of our own, which clients ignore. */
export function writeUsageParts({ parts }: Usage): JsonObject {
  if (parts === undefined) return {}
  return { svc_router: { requests: parts.length, breakdown: parts.map(writePart) } }
}

function writePart(part: UsagePart): JsonObject {
  const { role, model, status, ms, inputTokens, cachedTokens, outputTokens, reasoningTokens, source } = part
  return {
    role,
    ...(model === undefined ? {} : { model }),
    in: inputTokens,
    cached: cachedTokens,
    out: outputTokens,
    reasoning: reasoningTokens,
    ms,
    status,
    ...(source === 'estimated' ? { estimated: true } : {}),
  }
}
