const versioned = /(?:^|\/)gemini-(\d+(?:\.\d+)?)(?=[.-]|$)/i
const named = /(?:^|\/)gemini-/i
/** Names from before Gemini had numbers. */
const first = /(?:^|\/)gemini-pro(?:-vision)?$/i

/** What an alias such as `gemini-flash-latest` stands for at least. */
const newest = 3

/**
 * The generation in a model's name: 2.5 for `gemini-2.5-pro`. 0 for what is no Gemini model (Gemma, tuned models), of
 * which nothing is assumed. Google refuses fields that a generation does not know, and misses others in newer ones.
 */
export function generationOf(model: string): number {
  const version = versioned.exec(model)?.[1]
  if (version !== undefined) return Number(version)
  if (first.test(model)) return 1
  return named.test(model) ? newest : 0
}
