/** The conversation formats of clients (contract 1.4); `formats/formats.ts` implements them. */
export const clientFormatIds = ['openai-chat', 'openai-responses', 'anthropic-messages'] as const

/** The conversation formats of providers: those of clients, and those that no client uses here. */
export const formatIds = [...clientFormatIds, 'gemini'] as const

/** Embeddings are not conversations: they are only relayed, so they are in neither list. */
export const embeddingsFormatId = 'openai-embeddings' as const

/** A prompt and its continuation. Relayed, or translated into a conversation; nothing is translated into it. */
export const completionsFormatId = 'openai-completions' as const

/** The format of every request that clients send. */
export const requestFormatIds = [...clientFormatIds, completionsFormatId, embeddingsFormatId] as const

/** The formats of conversations, which can be translated into each other. */
export type ConversationFormatId = (typeof clientFormatIds)[number]
export type ClientFormatId = (typeof requestFormatIds)[number]
export type FormatId = (typeof formatIds)[number] | ClientFormatId
