/** The parts of a request that authentication covers. */
export interface AuthenticatedRequest {
  /** `https://host:port` */
  readonly origin: string
  /** Path with query. */
  readonly path: string
  readonly body: Uint8Array | string
}

/** Authenticates requests for providers that need more than a constant header. */
export interface Authenticator {
  /**
   * Headers for one request, flat: name, value, … Synchronous if nothing has to be awaited. @throws UpstreamError
   * `rejected_credentials`, `unreachable`, `timeout` or `server_error`, also as a rejection
   */
  headersFor(request: AuthenticatedRequest): readonly string[] | Promise<readonly string[]>
}
