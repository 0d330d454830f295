/** Classes of SQLSTATE that blame the values of a row: data exceptions and violated constraints. */
const rowFaults = /^2[23][0-9A-Z]{3}$/

/**
 * The SQLSTATE with which PostgreSQL refused the values of a row; undefined for any other error. Repeating the statement cannot
 * help then, and the other rows of its batch are not to blame.
 */
export function rowFaultOf(error: unknown): string | undefined {
  const { code } = (error ?? {}) as { readonly code?: unknown }
  return typeof code === 'string' && rowFaults.test(code) ? code : undefined
}
