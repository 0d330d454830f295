/**
 * The most tokens that one answer is believed to have used, in or out. A hundred times the largest context window; sums
 * over 90 million such requests are still exact in a double.
 */
export const maxTokenCount = 100_000_000
