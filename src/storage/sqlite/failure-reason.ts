/** Codes of the system and SQLite: they name a failure and contain nothing else. */
const codeShape = /^[A-Z][A-Z0-9_]{1,63}$/

/**
 * The reason for a failure, for a log line: a code such as `ERR_SQLITE_ERROR 13` for a full disk, or the error's class.
 */
export function failureReason(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown'
  const { code, errcode } = error as { code?: unknown; errcode?: unknown }
  const name = typeof code === 'string' && codeShape.test(code) ? code : error.constructor.name
  return typeof errcode === 'number' ? `${name} ${errcode}` : name
}
