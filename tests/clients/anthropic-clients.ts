import Anthropic, { type ClientOptions } from '@anthropic-ai/sdk'
import type { Service } from '../service.ts'
import { countingFetch, type Traffic } from './counting-fetch.ts'

/** A client as its README sets it up, but for a `fetch` that counts: one entry for each HTTP request that was made. */
export function connectAnthropic(
  service: Service,
  options: Omit<ClientOptions, 'fetch' | 'baseURL'> = {},
): { client: Anthropic; traffic: Traffic } {
  const { fetch, traffic } = countingFetch()
  // It takes one way to authenticate, and refuses two.
  const key = 'authToken' in options || 'apiKey' in options ? {} : { apiKey: service.key }
  const client = new Anthropic({
    baseURL: service.origin,
    fetch,
    ...key,
    ...options,
  })
  return { client, traffic }
}

/** The text of an answer's text blocks, one behind the other. */
export function textOf({ content }: { readonly content: readonly Anthropic.ContentBlock[] }): string {
  return content.map((block) => (block.type === 'text' ? block.text : '')).join('')
}
