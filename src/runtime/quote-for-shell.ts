/** Quotes a word for a POSIX shell if necessary. */
export function quoteForShell(word: string): string {
  return /^[A-Za-z0-9_./:@%+=-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`
}
