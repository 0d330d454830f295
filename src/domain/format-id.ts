/** Every wire format that clients and providers speak, by name; `formats/formats.ts` says what each of them is. */
export const formatIds = ['openai-chat', 'openai-responses'] as const

export type FormatId = (typeof formatIds)[number]
