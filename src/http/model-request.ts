import type { ClientFormatId } from '../domain/format-id.ts'
import { relayById } from '../formats/formats.ts'
import type { RequestWork } from '../gateway/auth/unadmitted-work.ts'
import type { ModelRequest } from '../gateway/ports.ts'
import { withAttachedTool } from './endpoints/attached-tools.ts'
import type { JsonBody } from './read-body.ts'
import { parseRequestHeaders } from './request-headers.ts'
import type { Exchange } from './route.ts'

/** A model request as its body and headers state it. Synchronous if no tool is attached. @throws ServiceError */
export function modelRequest(
  { request, requestId }: Exchange,
  format: ClientFormatId,
  work: RequestWork,
  { bytes, members, body }: JsonBody,
): ModelRequest | Promise<ModelRequest> {
  const stated = parseRequestHeaders(request, relayById(format).passedHeaders)
  // Written out, because an object that is spread or that grows later is allocated several times.
  return withAttachedTool(request, {
    id: requestId,
    format,
    bytes,
    members,
    body,
    timeoutMs: stated.timeoutMs,
    isRetry: stated.isRetry,
    passedHeaders: stated.passedHeaders,
    fusionDepth: stated.fusionDepth,
    traceparent: stated.traceparent,
    statedSession: stated.statedSession,
    userAgent: stated.userAgent,
    work,
    held: undefined,
  })
}
