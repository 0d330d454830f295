/**
 * The highest plausible token count of one answer, for input or output: a hundred times the largest context window.
 * Sums of 90 million such counts are still exact in a double.
 */
export const maxTokenCount = 100_000_000
