import { fusionToolType } from '../domain/profiles.ts'
import type { JsonObject } from '../domain/conversation.ts'
import { errorFields } from './error-fields.ts'
import { objectOf } from './fields.ts'
import type { RelayRules } from './relay.ts'

/** Chat completions, relayed. A comment keeps the stream alive; every chunk is independent of the others. */
export const openaiChatRelay: RelayRules = {
  requestChanges(body, conversation, target) {
    const changes: Record<string, string | undefined> = { model: JSON.stringify(target.model) }
    if (target.stream && target.dialect.streamUsage && !conversation.streamUsage) {
      changes['stream_options'] = JSON.stringify({ ...objectOf(body['stream_options']), include_usage: true })
    }
    Object.assign(changes, withoutFusionTool(body, conversation.fusionTool !== undefined))
    for (const field of target.dialect.refusedFields) changes[field] = undefined
    return changes
  },

  notable: [/finish_reason"\s*:\s*"|usage"\s*:\s*\{|error"\s*:/g, '[DONE]', '\n:'],

  ending: 'data: [DONE]\n\n',

  numbered: false,

  isUnasked(data, conversation) {
    if (conversation.streamUsage || data['usage'] == null) return false
    return Array.isArray(data['choices']) && data['choices'].length === 0
  },

  observe(data, memory) {
    if (!Array.isArray(data['choices'])) return
    memory.finishedChoices ??= new Set()
    for (const choice of data['choices'].map(objectOf)) {
      if (typeof choice['finish_reason'] === 'string') memory.finishedChoices.add(choice['index'])
    }
  },

  keepAlive: () => ': keep-alive\n\n',

  failure(failure) {
    return `data: ${JSON.stringify({ error: errorFields(failure) })}\n\ndata: [DONE]\n\n`
  },
}

/** The changes that take our own server tool out of a request: no provider knows it (spec 1.5). */
export function withoutFusionTool(body: JsonObject, attached: boolean): Record<string, string | undefined> {
  if (!attached || !Array.isArray(body['tools'])) return {}
  const others = body['tools'].filter((tool) => objectOf(tool)['type'] !== fusionToolType)
  if (others.length > 0) return { tools: JSON.stringify(others) }
  return { tools: undefined, tool_choice: undefined, parallel_tool_calls: undefined }
}
