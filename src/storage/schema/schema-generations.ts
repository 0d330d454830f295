/** An answer that is stored for retries, or a background response. */
export interface GenerationRow {
  account_id: string
  /** Of the caller's `Idempotency-Key`, or of the request ID if it sent none. */
  key_digest: string
  /** The request that runs it; unique. */
  request_id: string
  body_digest: string
  format: string
  stream: number
  background: number
  state: string
  has_content: number
  cancel_requested: number
  head: string | null
  sealed_response: string | null
  chunks: number
  /** Of all chunks, before encryption. */
  bytes: number
  /** By the database's clock. */
  lease_until_ms: number
  created_at_ms: number
  expires_at_ms: number
}

export interface GenerationChunkRow {
  request_id: string
  number: number
  account_id: string
  sealed: string
}

/** Which backends hold the prompts of a session in a cache. */
export interface CacheSessionRow {
  account_id: string
  session: string
  state: string
  updated_at_ms: number
  expires_at_ms: number
}
