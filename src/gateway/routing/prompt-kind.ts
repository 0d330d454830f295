/** Upper bounds of the prompt sizes that are measured separately, in tokens; larger prompts are one more size. */
const sizeLimits = [2_000, 16_000, 64_000] as const
/** Approximate bytes of a request body per token. */
const bytesPerToken = 4
const sizes = sizeLimits.length + 1

/** The time to first content of each size that is assumed for a backend without measurements, milliseconds. */
const priorsMs = [1_000, 1_500, 3_000, 6_000] as const
/** Models that reason first, and answers that are not streamed, take longer to their first content. */
const reasoningFactor = 5
const wholePriorMs = 10_000

/**
 * What the time to first content depends on: the size of the prompt, whether the caller requests reasoning, and whether
 * the answer is streamed. From 0 to `promptKinds` - 1.
 */
export type PromptKind = number

export const promptKinds = 2 * sizes + 1

/** The kind of a request whose body has this many bytes. */
export function promptKindOf(
  bytes: number,
  { stream, reasoning }: { stream: boolean; reasoning?: unknown },
): PromptKind {
  if (!stream) return promptKinds - 1
  return sizeOf(bytes) + (reasoning === undefined ? 0 : sizes)
}

/** Whether it is a streamed prompt of at most 16,000 tokens without reasoning. */
export function isShortPrompt(kind: PromptKind): boolean {
  return kind < 2
}

/** Whether the first content comes about when the prompt is read: it is streamed, and no reasoning comes before it. */
export function isPrompt(kind: PromptKind): boolean {
  return kind < sizes
}

/** The time to first content that is assumed without measurements, milliseconds. */
export function priorMsOf(kind: PromptKind): number {
  if (kind === promptKinds - 1) return wholePriorMs
  return priorsMs[kind % sizes]! * (kind < sizes ? 1 : reasoningFactor)
}

/** The approximate number of tokens in this many bytes of a request body. */
export function tokensIn(bytes: number): number {
  return bytes / bytesPerToken
}

function sizeOf(bytes: number): number {
  const tokens = tokensIn(bytes)
  const size = sizeLimits.findIndex((limit) => tokens <= limit)
  return size < 0 ? sizeLimits.length : size
}

/** Tokens of a prompt of a kind, if nothing else is known. */
export function typicalTokens(kind: PromptKind): number {
  if (kind === promptKinds - 1) return sizeLimits[0]
  return (sizeLimits[kind % sizes] ?? 2 * sizeLimits.at(-1)!) / 2
}
