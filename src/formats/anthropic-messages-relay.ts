import type { Json, JsonObject } from '../domain/conversation.ts'
import { failureFrame, pingFrame } from './anthropic-messages/frames.ts'
import { isForeignThinking } from './anthropic-messages/seal.ts'
import { isArray, isObject } from './fields.ts'
import { withoutFusionTool } from './openai-chat-relay.ts'
import type { RelayRules } from './relay.ts'

/** Messages, relayed. The stream ends with its own last event; a ping keeps it alive wherever it stands. */
export const anthropicMessagesRelay: RelayRules = {
  requestChanges(body, conversation, target) {
    const changes: Record<string, string | undefined> = { model: JSON.stringify(target.model) }
    Object.assign(changes, withoutFusionTool(body, conversation.fusionTool !== undefined))
    const messages = withoutForeignThinking(body['messages'])
    if (messages !== undefined) changes['messages'] = JSON.stringify(messages)
    for (const field of target.dialect.refusedFields) changes[field] = undefined
    return changes
  },

  notable: [
    /"type"\s*:\s*"(?:message_(?:start|delta|stop)|signature_delta|(?:redacted_)?thinking|error)"|"error"\s*:\s*\{/g,
    '[DONE]',
    '\n:',
  ],

  // Fields that are not for everybody yet are refused without it; Claude Code sends such in every request.
  passedHeaders: ['anthropic-beta'],

  ending: '',

  sealing: {
    member: 'messages',
    opening: /(?<!\\)"(?:signature|data)"\s*:\s*"/g,
    needles: ['"signature"', '"redacted_thinking"'],
    sealedMember,
    dropsEmptied: true,
  },

  numbered: false,

  isUnasked: () => false,

  observe() {},

  keepAlive: () => pingFrame,

  failure: failureFrame,
}

/** Only of thoughts: tools have members of these names, and images have data. A thought that nobody signed has an empty signature. */
function sealedMember({ type, signature, data }: JsonObject): string | undefined {
  if (type === 'thinking' || type === 'signature_delta') {
    return typeof signature === 'string' && signature !== '' ? 'signature' : undefined
  }
  return type === 'redacted_thinking' && typeof data === 'string' ? 'data' : undefined
}

/**
 * The messages without the thoughts that another vendor's model had earlier in the conversation, for their signature is
 * refused; undefined where there are none, which is the rule.
 */
function withoutForeignThinking(messages: Json | undefined): readonly Json[] | undefined {
  if (!isArray(messages) || !messages.some(hasForeignThinking)) return undefined
  const kept: Json[] = []
  for (const message of messages) {
    if (!hasForeignThinking(message)) kept.push(message)
    else {
      const content = message.content.filter((block) => !isForeign(block))
      if (content.length > 0) kept.push({ ...message, content })
    }
  }
  return kept
}

function hasForeignThinking(message: Json): message is JsonObject & { readonly content: readonly Json[] } {
  if (!isObject(message) || message['role'] !== 'assistant') return false
  const { content } = message
  return isArray(content) && content.some(isForeign)
}

function isForeign(block: Json): boolean {
  return isObject(block) && isForeignThinking(block)
}
