/** The system's and SQLite's codes: they name a failure and hold nothing else. */
const codeShape = /^[A-Z][A-Z0-9_]{1,63}$/

/** Why something failed, for a log line: codes, such as `ERR_SQLITE_ERROR 13` for a full disk, or else the error's class. */
export function failureReason(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown'
  const { code, errcode } = error as { code?: unknown; errcode?: unknown }
  const name = typeof code === 'string' && codeShape.test(code) ? code : error.constructor.name
  return typeof errcode === 'number' ? `${name} ${errcode}` : name
}
