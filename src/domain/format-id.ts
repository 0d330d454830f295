/** Every wire format that clients speak, by name; `formats/formats.ts` says what each of them is. */
export const clientFormatIds = ['openai-chat', 'openai-responses', 'anthropic-messages'] as const

/** Every wire format that providers speak: those of clients, and those that no client of ours speaks. */
export const formatIds = [...clientFormatIds] as const

export type ClientFormatId = (typeof clientFormatIds)[number]
export type FormatId = (typeof formatIds)[number]
