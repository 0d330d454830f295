/** What may be logged of a bug: its kind and its places in the code. Messages can hold anything and stay out (contract 28.9). */
export function describeBug(thrown: unknown): { name: string; stack: string } {
  if (!(thrown instanceof Error)) return { name: typeof thrown, stack: '' }
  const places = (thrown.stack ?? '').split('\n').filter((line) => /^\s+at /.test(line))
  return { name: thrown.name, stack: places.slice(0, 12).join('\n') }
}

/** Whatever was thrown, as an error that can be passed on. */
export function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error('not an error', { cause: error })
}

/** How a failure is named in the log: the kind of what was thrown, never its text. */
export function errorName(error: unknown): string {
  return error instanceof Error ? error.name : 'unknown'
}
