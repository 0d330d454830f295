import { UpstreamError } from '../domain/upstream.ts'
import type { UpstreamHead } from './ports.ts'

/** Statuses with which a provider says that the content is at fault: passed on, no failover (contract 3.3, 5.1). */
const contentStatuses = new Set([400, 413, 422])

/** Reads what an upstream's refusal means from its status and its body. The body is read for its codes, never passed on. */
export function classifyRefusal(head: UpstreamHead, body: string): UpstreamError {
  const { status, retryAfterMs } = head
  const { code, param } = readError(body)
  if (code === 'context_length_exceeded') return new UpstreamError('context_too_long', { status })
  if (contentStatuses.has(status)) return new UpstreamError('rejected_content', { status, param })
  if (status === 401 || status === 402 || status === 403) return new UpstreamError('rejected_credentials', { status })
  // A used-up account of ours at the provider does not come back in seconds: it is as good as a bad credential.
  if (status === 429 && code === 'insufficient_quota') return new UpstreamError('rejected_credentials', { status })
  if (status === 429) return new UpstreamError('rate_limited', { status, retryAfterMs })
  if (status === 408 || status === 504) return new UpstreamError('timeout', { status, retryAfterMs })
  return new UpstreamError('server_error', { status, retryAfterMs })
}

/** Names of request fields only: `messages[0].content`, `temperature`. */
const paramShape = /^[A-Za-z_][\w.[\]-]{0,63}$/

function readError(body: string): { code: string | undefined; param: string | undefined } {
  let parsed: unknown
  try {
    parsed = JSON.parse(body)
  } catch {
    // Not JSON: a proxy's page. Its status says enough.
    return { code: undefined, param: undefined }
  }
  const error = field(parsed, 'error')
  const code = field(error, 'code') ?? field(error, 'type')
  const param = field(error, 'param')
  return {
    code: typeof code === 'string' ? code : undefined,
    param: typeof param === 'string' && paramShape.test(param) ? param : undefined,
  }
}

function field(value: unknown, name: string): unknown {
  if (typeof value !== 'object' || value === null) return undefined
  return (value as Readonly<Record<string, unknown>>)[name]
}
