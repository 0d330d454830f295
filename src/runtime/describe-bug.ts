/**
 * What may be logged of a bug: its kind and the locations in our code. Messages can contain anything, so they are
 * omitted (contract 28.9).
 */
export function describeBug(thrown: unknown): { name: string; stack: string } {
  if (!(thrown instanceof Error)) return { name: typeof thrown, stack: '' }
  const locations = (thrown.stack ?? '').split('\n').filter((line) => /^\s+at /.test(line))
  return { name: thrown.name, stack: locations.slice(0, 12).join('\n') }
}

/** Turns anything that was thrown into an error. */
export function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error('not an error', { cause: error })
}

/** The name of an error for the log: its kind, never its message. */
export function errorName(error: unknown): string {
  return error instanceof Error ? error.name : 'unknown'
}
