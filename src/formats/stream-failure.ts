/** The error that a client receives when a stream fails; `message` and `code` come from the error catalog. */
export interface StreamFailure {
  readonly code: string
  readonly type: string
  readonly message: string
  readonly param: string | null
  /** Where the error arose, as in `error.source` (contract 4.1). */
  readonly source: string
  readonly retryable: boolean
  readonly requestId: string
}
