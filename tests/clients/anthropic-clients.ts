import Anthropic, { type ClientOptions } from '@anthropic-ai/sdk'
import type { Service } from '../service.ts'
import { countingFetch, type Traffic } from './counting-fetch.ts'

/** A client set up as in its README, except for a `fetch` that records every HTTP request. */
export function connectAnthropic(
  service: Service,
  options: Omit<ClientOptions, 'fetch' | 'baseURL'> = {},
): { client: Anthropic; traffic: Traffic } {
  const { fetch, traffic } = countingFetch()
  // It accepts one kind of credential and rejects two.
  const key = 'authToken' in options || 'apiKey' in options ? {} : { apiKey: service.key }
  const client = new Anthropic({
    baseURL: service.origin,
    fetch,
    ...key,
    ...options,
  })
  return { client, traffic }
}

/** The joined text of an answer's text blocks. */
export function textOf({ content }: { readonly content: readonly Anthropic.ContentBlock[] }): string {
  return content.map((block) => (block.type === 'text' ? block.text : '')).join('')
}
