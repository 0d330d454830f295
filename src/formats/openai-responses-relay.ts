import type { JsonObject } from '../domain/conversation.ts'
import { errorFields } from './error-fields.ts'
import { withoutFusionTool } from './openai-chat-relay.ts'
import { isObject } from './fields.ts'
import type { RelayRules } from './relay.ts'

/** Responses, relayed. The stream's own response object ends it and keeps it alive, so that its id never changes. */
export const openaiResponsesRelay: RelayRules = {
  requestChanges(body, conversation, target) {
    const changes: Record<string, string | undefined> = { model: JSON.stringify(target.model) }
    Object.assign(changes, withoutFusionTool(body, conversation.fusionTool !== undefined))
    for (const field of target.dialect.refusedFields) changes[field] = undefined
    return changes
  },

  notable: [
    /"type"\s*:\s*"(?:response\.(?:completed|incomplete|failed|cancelled|created)|error)"|"error"\s*:\s*\{/g,
    '[DONE]',
    '\n:',
  ],

  ending: 'data: [DONE]\n\n',

  numbered: true,

  isUnasked: () => false,

  observe(data, memory) {
    if (typeof data['sequence_number'] === 'number') memory.sequence = data['sequence_number'] + memory.inserted
    const response = data['response']
    if (memory.response === undefined && isObject(response)) memory.response = response
  },

  keepAlive(memory) {
    if (memory.response === undefined) return undefined
    memory.inserted += 1
    memory.sequence += 1
    return frame('response.in_progress', { sequence_number: memory.sequence, response: memory.response })
  },

  failure(failure, memory) {
    const { code, message, param } = failure
    const error = { sequence_number: ++memory.sequence, code, message, param, error: errorFields(failure) }
    const response = { ...memory.response, status: 'failed', error: { code, message } }
    const failed = { sequence_number: ++memory.sequence, response }
    return `${frame('error', error)}${frame('response.failed', failed)}data: [DONE]\n\n`
  },
}

function frame(type: string, data: JsonObject): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`
}
