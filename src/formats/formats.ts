import type { Format, FormatId } from './format.ts'
import { openaiChat } from './openai-chat/openai-chat.ts'
import { openaiChatRelay } from './openai-chat-relay.ts'
import { openaiResponses } from './openai-responses/openai-responses.ts'
import { openaiResponsesRelay } from './openai-responses-relay.ts'
import type { RelayRules } from './relay.ts'

/** Every format: one entry each (architecture 6). */
export const formats: Readonly<Record<FormatId, Format>> = {
  'openai-chat': openaiChat,
  'openai-responses': openaiResponses,
}

/** The format of that name. */
export function formatById(id: FormatId): Format {
  return formats[id]
}

const relays: Readonly<Record<FormatId, RelayRules>> = {
  'openai-chat': openaiChatRelay,
  'openai-responses': openaiResponsesRelay,
}

/** How that format is passed on where both sides speak it (architecture 5.3). */
export function relayById(id: FormatId): RelayRules {
  return relays[id]
}
