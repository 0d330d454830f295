import { limitNames } from '../rejections/optional-fields.ts'
import { errorFields } from '../error-fields.ts'
import { objectOf, type JsonObject } from '../../domain/json.ts'
import { isArray } from '../fields.ts'
import type { Conversation } from '../../domain/conversation.ts'
import type { WriteTarget } from '../format.ts'
import type { RelayRules, RequestChanges, StreamRules } from '../relay.ts'

/** What is changed in every request for completions: it says whether it streams, and streams count their tokens. */
export function streamChanges(
  body: JsonObject,
  { streamUsage }: Conversation,
  { stream, dialect }: WriteTarget,
): RequestChanges {
  const changes: RequestChanges = {}
  // Some servers stream unless told not to.
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

  // Usage has a chunk of its own, behind the last reason.
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

/** Chat completions, relayed. A comment keeps the stream alive; every chunk is independent of the others. */
export const openaiChatRelay: RelayRules = {
  requestChanges(body, conversation, target) {
    const changes = streamChanges(body, conversation, target)
    const { maxTokensField, refusedFields } = target.dialect
    const other = limitNames[maxTokensField]
    const limit = body[other]
    // OpenAI's models that reason refuse the old name; the new one is known wherever this dialect is.
    const isRenamed = other === 'max_tokens' || refusedFields.includes(other)
    if (isRenamed && limit !== undefined && body[maxTokensField] === undefined) {
      changes[other] = undefined
      changes[maxTokensField] = JSON.stringify(limit)
    }
    return changes
  },

  words: { member: 'messages', part: 'text' },

  stream: completionStream,
}
