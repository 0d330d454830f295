import type { Conversation } from '../../domain/conversation.ts'
import { objectOf, type JsonObject } from '../../domain/json.ts'
import { errorFields } from '../error-fields.ts'
import { isArray } from '../fields.ts'
import type { WriteTarget } from '../format.ts'
import { relayMarks } from '../openai/cache-marks.ts'
import { limitNames } from '../rejections/optional-fields.ts'
import type { RelayRules, RequestChanges, StreamRules } from '../relay.ts'

/** Changes to every completions request: set `stream` explicitly, and request the usage of streams. */
export function streamChanges(
  body: JsonObject,
  { streamUsage }: Conversation,
  { stream, dialect }: WriteTarget,
): RequestChanges {
  const changes: RequestChanges = {}
  // Some servers stream by default.
  if (!stream && body['stream'] === undefined) changes['stream'] = 'false'
  if (stream && dialect.streamUsage && !streamUsage)
    changes['stream_options'] = JSON.stringify({ ...objectOf(body['stream_options']), include_usage: true })
  return changes
}

/** How streams of completions are relayed. */
export const completionStream: StreamRules = {
  deltas: ['content', 'reasoning_content', 'reasoning', 'refusal', 'arguments', 'obfuscation'],

  ending: 'data: [DONE]\n\n',

  numbered: false,

  // Usage has a chunk of its own, after the last finish reason.
  followsEnd: ({ usage }) => usage != null,

  isUnrequested({ usage, choices }, { streamUsage }) {
    return !streamUsage && usage != null && isArray(choices) && choices.length === 0
  },

  carriesReport({ usage, choices }, { streamUsage }) {
    if (streamUsage) return usage != null && isArray(choices) && choices.length === 0
    return isArray(choices) && choices.some((choice) => typeof objectOf(choice)['finish_reason'] === 'string')
  },

  observe({ choices }, memory) {
    if (!isArray(choices)) return
    memory.finishedChoices ??= new Set()
    for (const choice of choices.map(objectOf)) {
      if (typeof choice['finish_reason'] === 'string') memory.finishedChoices.add(choice['index'])
    }
  },

  keepAlive: () => ': keep-alive\n\n',

  failure(failure) {
    return `data: ${JSON.stringify({ error: errorFields(failure) })}\n\ndata: [DONE]\n\n`
  },
}

/** Chat completions, relayed. A comment keeps the stream alive; chunks do not depend on each other. */
export const openaiChatRelay: RelayRules = {
  requestChanges(body, conversation, target) {
    const changes = streamChanges(body, conversation, target)
    const { maxTokensField, refusedFields } = target.dialect
    const other = limitNames[maxTokensField]
    const limit = body[other]
    // OpenAI's reasoning models reject the old name; every endpoint with this dialect supports the new one.
    const isRenamed = other === 'max_tokens' || refusedFields.includes(other)
    if (isRenamed && limit !== undefined && body[maxTokensField] === undefined) {
      changes[other] = undefined
      changes[maxTokensField] = JSON.stringify(limit)
    }
    return changes
  },

  marks: (body, _bytes, target) => relayMarks('messages', body, target),

  words: { member: 'messages', part: 'text' },

  stream: completionStream,
}
