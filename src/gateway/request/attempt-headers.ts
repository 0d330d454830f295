import { traceHeader } from '../../domain/trace-header.ts'
import type { AllowedRequest, Backend } from '../ports.ts'

/** The request headers for one backend: the caller's, which say how to read the body, and those that we add. */
export function headersFor(
  backend: Backend,
  { format, passedHeaders, addedHeaders }: AllowedRequest,
  traceparent: string | undefined,
): readonly string[] | undefined {
  const passed = backend.format === format ? passedHeaders : undefined
  if (addedHeaders === undefined && traceparent === undefined) return passed
  const headers = [...(passed ?? []), ...(addedHeaders ?? [])]
  if (traceparent !== undefined) headers.push(traceHeader, traceparent)
  return headers
}
