/** Every wire format in which clients converse, by name; `formats/formats.ts` says what each of them is. */
export const clientFormatIds = ['openai-chat', 'openai-responses', 'anthropic-messages'] as const

/** Every wire format in which providers converse: those of clients, and those that no client of ours speaks. */
export const formatIds = [...clientFormatIds, 'gemini'] as const

/** Embeddings are no conversation: they are relayed and never translated, and so they are in neither list. */
export const embeddingsFormatId = 'openai-embeddings' as const

/** A prompt and its continuation: relayed, or translated into a conversation. Nothing is translated into it. */
export const completionsFormatId = 'openai-completions' as const

/** Every wire format of a request that clients send. */
export const requestFormatIds = [...clientFormatIds, completionsFormatId, embeddingsFormatId] as const

/** The formats that hold a conversation, and can be translated into each other. */
export type ConversationFormatId = (typeof clientFormatIds)[number]
export type ClientFormatId = (typeof requestFormatIds)[number]
export type FormatId = (typeof formatIds)[number] | ClientFormatId
