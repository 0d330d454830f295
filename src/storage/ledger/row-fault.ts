import { failureReason } from '../sqlite/failure-reason.ts'

/** Classes of SQLSTATE that blame the values of a row: data exceptions and violated constraints. */
const rowFaults = /^2[23][0-9A-Z]{3}$/

/**
 * Whether PostgreSQL refused the values of a row: repeating the statement cannot help, and the other rows of its batch are
 * not to blame.
 */
export function isRowFault(error: unknown): boolean {
  const { code } = (error ?? {}) as { readonly code?: unknown }
  return typeof code === 'string' && rowFaults.test(code)
}

/** A code, never a text. */
export function rowFaultOf(error: unknown): string {
  const { code } = (error ?? {}) as { readonly code?: unknown }
  return typeof code === 'string' && rowFaults.test(code) ? code : failureReason(error)
}
