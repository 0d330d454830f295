import { createHash } from 'node:crypto'
import { invalidRequest } from './errors.ts'

/** The header that names a request, so that its retries get the same answer. In lowercase, as Node reads it. */
export const idempotencyKeyHeader = 'idempotency-key'

/** As Stripe accepts. */
const longestKey = 255
const printable = /^[\x20-\x7e]+$/

/** The key of a request. @throws ServiceError `invalid_request` */
export function readIdempotencyKey(value: string | readonly string[] | undefined): string {
  if (typeof value !== 'string' || value.length > longestKey || !printable.test(value)) {
    throw invalidRequest(
      idempotencyKeyHeader,
      `The Idempotency-Key header must have 1 to ${longestKey} printable ASCII characters. Send a random UUID, for example.`,
    )
  }
  return value
}

/** What is stored of a key: its text may be meaningful. */
export function keyDigest(accountId: string, key: string): string {
  return digestOf(['key', accountId, key])
}

/** The same for a background response without a key. */
export function backgroundDigest(accountId: string, requestId: string): string {
  return digestOf(['background', accountId, requestId])
}

/**
 * What is stored of a request: the digest of everything that the client chose and that affects the answer (contract 28.15,
 * 39.2). The key makes it impossible to guess short prompts from the digest.
 */
export function requestDigest(
  accountId: string,
  key: string,
  { path, headers, body }: { readonly path: string; readonly headers: readonly string[]; readonly body: Uint8Array },
): string {
  return createHash('sha256')
    .update(JSON.stringify(['request', accountId, key, path, ...headers]))
    .update('\0')
    .update(body)
    .digest('base64url')
}

function digestOf(parts: readonly string[]): string {
  return createHash('sha256').update(JSON.stringify(parts)).digest('base64url')
}
