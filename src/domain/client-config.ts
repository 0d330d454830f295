/** The values in a client's configuration. */
export interface ClientConfig {
  readonly baseUrl: string
  readonly keyVariable: string
  /** Tells a user without a key where to get one. */
  readonly keyHint: string
  readonly model: string
  /** Whether all requests of the agent attach the fusion tool, through a header. */
  readonly hasFusionTool?: boolean
}

/** The default name of the variable with the key. */
export const defaultKeyVariable = 'SVC_ROUTER_API_KEY'

/** The base URL without `/v1`: the base URL of Anthropic clients, and of `/health`. */
export function rootOf(baseUrl: string): string {
  return baseUrl.replace(/\/v1$/, '')
}
