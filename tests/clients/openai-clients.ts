import OpenAI7 from 'openai'
import { zodResponseFormat, zodTextFormat } from 'openai/helpers/zod'
import { isLongRun } from '../long-run.ts'
import type { Service } from '../service.ts'
import { countingFetch, type Traffic } from './counting-fetch.ts'

const newest = { name: 'openai 7.55', OpenAI: OpenAI7, zodResponseFormat, zodTextFormat }

/** The previous major version under the types of the newest: the parts used here are the same in both. */
async function previous(): Promise<typeof newest> {
  const { OpenAI } = await import('openai-6')
  const helpers = await import('openai-6/helpers/zod')
  return { name: 'openai 6.49', ...helpers, OpenAI: OpenAI as unknown as typeof OpenAI7 }
}

/** The newest major version, and in a long run the previous one. */
export const majors = isLongRun ? [newest, await previous()] : [newest]

/** A client set up as in its README, except for a `fetch` that records every HTTP request. */
export function connect(
  OpenAI: typeof OpenAI7,
  service: Service,
  options: Omit<NonNullable<ConstructorParameters<typeof OpenAI7>[0]>, 'fetch' | 'baseURL'> = {},
): { client: OpenAI7; traffic: Traffic } {
  const { fetch, traffic } = countingFetch()
  const client = new OpenAI({
    apiKey: service.key,
    baseURL: service.baseUrl,
    fetch,
    ...options,
  })
  return { client, traffic }
}

/** The tool that the simulated model calls for questions about the weather. */
export const weatherParameters = {
  type: 'object' as const,
  properties: { city: { type: 'string' as const } },
  required: ['city'],
  additionalProperties: false,
}

export function weatherIn(city: string): string {
  return `${city.length} degrees in ${city}`
}

/** One white pixel. */
export const pixel =
  'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mP8/x8AAwMCAO+ip1sAAAAASUVORK5CYII='

/** All items of a stream or a paginated list, in order. */
export async function collect<T>(source: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = []
  for await (const one of source) all.push(one)
  return all
}
