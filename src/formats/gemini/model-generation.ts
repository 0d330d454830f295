const versioned = /(?:^|\/)gemini-(\d+(?:\.\d+)?)(?=[.-]|$)/i
const named = /(?:^|\/)gemini-/i
/** Names from before Gemini had numbers. */
const first = /(?:^|\/)gemini-pro(?:-vision)?$/i

/** The minimum generation behind an alias such as `gemini-flash-latest`. */
const newest = 3

/**
 * The generation in a model's name: 2.5 for `gemini-2.5-pro`. 0 for other models (Gemma, tuned models), about which
 * nothing is assumed. Google rejects fields that a generation does not know, and requires others in newer ones.
 */
export function generationOf(model: string): number {
  const version = versioned.exec(model)?.[1]
  if (version !== undefined) return Number(version)
  if (first.test(model)) return 1
  return named.test(model) ? newest : 0
}
