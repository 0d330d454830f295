import type { ConversationFormatId } from '../domain/format-id.ts'
import { anthropicMessages } from './anthropic-messages/anthropic-messages.ts'
import { anthropicMessagesRelay } from './anthropic-messages/relay.ts'
import type { ClientFormatId, Format, FormatId, ProviderFormat } from './format.ts'
import { gemini } from './gemini/gemini.ts'
import { openaiChat } from './openai-chat/openai-chat.ts'
import { openaiChatRelay } from './openai-chat/relay.ts'
import { openaiCompletions } from './openai-completions/openai-completions.ts'
import { openaiCompletionsRelay } from './openai-completions/relay.ts'
import { openaiEmbeddings, openaiEmbeddingsRelay } from './openai-embeddings.ts'
import { openaiResponses } from './openai-responses/openai-responses.ts'
import { openaiResponsesRelay } from './openai-responses/relay.ts'
import type { RelayRules } from './relay.ts'

/** Every client format: one entry each (contract 35.4). */
export const clientFormats: Readonly<Record<ConversationFormatId, Format>> = {
  'openai-chat': openaiChat,
  'openai-responses': openaiResponses,
  'anthropic-messages': anthropicMessages,
}

/** Every provider format: one entry each. */
const formats: Readonly<Record<FormatId, ProviderFormat>> = {
  ...clientFormats,
  gemini,
  'openai-completions': openaiCompletions,
  'openai-embeddings': openaiEmbeddings,
}

/** The format of that name. */
export function formatById(id: ClientFormatId): Format
export function formatById(id: FormatId): ProviderFormat
export function formatById(id: FormatId): ProviderFormat {
  return formats[id]
}

const relays: Readonly<Record<ClientFormatId, RelayRules>> = {
  'openai-chat': openaiChatRelay,
  'openai-responses': openaiResponsesRelay,
  'anthropic-messages': anthropicMessagesRelay,
  'openai-completions': openaiCompletionsRelay,
  'openai-embeddings': openaiEmbeddingsRelay,
}

/** The relay rules of that format, for when client and provider both use it (contract 35.3). */
export function relayById(id: ClientFormatId): RelayRules {
  return relays[id]
}
