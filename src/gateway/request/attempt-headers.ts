import { traceHeader } from '../../domain/trace-header.ts'
import { cacheHeader } from '../cache/provider-cache.ts'
import type { AllowedRequest, Backend } from '../ports.ts'

/** The request headers for one backend: the caller's, which say how to read the body, and those that we add. */
export function headersFor(
  backend: Backend,
  { format, passedHeaders, addedHeaders, body, cache }: AllowedRequest,
  traceparent: string | undefined,
): readonly string[] | undefined {
  const passed = backend.format === format ? passedHeaders : undefined
  const own = cacheHeader(backend, body['prompt_cache_key'], cache)
  if (addedHeaders === undefined && traceparent === undefined && own === undefined) return passed
  const headers = [...(passed ?? []), ...(addedHeaders ?? []), ...(own ?? [])]
  if (traceparent !== undefined) headers.push(traceHeader, traceparent)
  return headers
}
