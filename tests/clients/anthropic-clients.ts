import Anthropic, { type ClientOptions } from '@anthropic-ai/sdk'
import type { Service } from '../service.ts'
import type { Traffic } from './openai-clients.ts'

/** A client as its README sets it up, but for a `fetch` that counts: one entry for each HTTP request that was made. */
export function connectAnthropic(
  service: Service,
  options: Omit<ClientOptions, 'fetch' | 'baseURL'> = {},
): { client: Anthropic; traffic: Traffic } {
  const traffic: Traffic = { sent: [], answers: [] }
  // It takes one way to authenticate, and refuses two.
  const key = 'authToken' in options || 'apiKey' in options ? {} : { apiKey: service.key }
  const client = new Anthropic({
    baseURL: service.origin,
    fetch: async (input, init) => {
      const url = input instanceof Request ? input.url : input
      traffic.sent.push({ path: new URL(url).pathname, atMs: performance.now() })
      const response = await fetch(input, init)
      traffic.answers.push({ status: response.status, headers: response.headers })
      return response
    },
    ...key,
    ...options,
  })
  return { client, traffic }
}

/** The text of an answer's text blocks, one behind the other. */
export function textOf({ content }: { readonly content: readonly Anthropic.ContentBlock[] }): string {
  return content.map((block) => (block.type === 'text' ? block.text : '')).join('')
}
