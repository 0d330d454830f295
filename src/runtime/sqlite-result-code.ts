/** Primary result codes of SQLite. */
export const sqliteCodes = {
  busy: 5,
  locked: 6,
  readOnly: 8,
  ioError: 10,
  corrupt: 11,
  full: 13,
  cannotOpen: 14,
  notADatabase: 26,
} as const

/** The codes for a disk that is read-only, failing, or full, and for files that cannot be opened. */
export const sqliteDiskCodes: readonly unknown[] = [
  sqliteCodes.readOnly,
  sqliteCodes.ioError,
  sqliteCodes.full,
  sqliteCodes.cannotOpen,
]

/**
 * The primary result code of an error of `node:sqlite`, whose `errcode` is an extended one; undefined for other errors.
 */
export function sqliteResultCode(error: unknown): number | undefined {
  const { errcode } = (error ?? {}) as { readonly errcode?: unknown }
  return typeof errcode === 'number' ? errcode & 0xff : undefined
}
