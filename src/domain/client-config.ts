/** What a client is wired with. */
export interface ClientConfig {
  readonly baseUrl: string
  readonly keyVariable: string
  /** Where the key is to be had, for a client that misses it. */
  readonly keyHint: string
  readonly model: string
  /** Whether the fusion tool goes with all that an agent asks: a header says so. */
  readonly hasFusionTool?: boolean
}

/** The variable that holds the key wherever nothing else is said. */
export const defaultKeyVariable = 'SVC_ROUTER_API_KEY'

/** The base URL without `/v1`: what the Anthropic clients take, and where `/health` stands. */
export function rootOf(baseUrl: string): string {
  return baseUrl.replace(/\/v1$/, '')
}
