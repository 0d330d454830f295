import { createAnthropic } from '@ai-sdk/anthropic'
import { createOpenAI } from '@ai-sdk/openai'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import * as ai7 from 'ai'
import type { EmbeddingModel, LanguageModel } from 'ai'
import { isLongRun } from '../long-run.ts'
import type { Service } from '../service.ts'
import { countingFetch, type Traffic } from './counting-fetch.ts'

/** The parts of the SDK used here, under one type, with the names of the newer major version. */
type Ai = Pick<
  typeof ai7,
  | 'APICallError'
  | 'RetryError'
  | 'Output'
  | 'tool'
  | 'isStepCount'
  | 'generateText'
  | 'generateObject'
  | 'streamText'
  | 'embed'
  | 'embedMany'
>

const newest = { name: 'ai 7', ai: ai7 as Ai, createOpenAI, createOpenAICompatible, createAnthropic }

async function previous(): Promise<typeof newest> {
  const ai6 = await import('ai-6')
  /** The newer major version calls the stream of all parts `stream`. */
  const streamText = (options: Parameters<typeof ai6.streamText>[0]): unknown =>
    new Proxy(ai6.streamText(options), {
      get: (target, name) => Reflect.get(target, name === 'stream' ? 'fullStream' : name, target) as unknown,
    })
  const openai = await import('ai-sdk-openai-3')
  const compatible = await import('ai-sdk-openai-compatible-2')
  const anthropic = await import('ai-sdk-anthropic-3')
  return {
    name: 'ai 6',
    ai: { ...ai6, isStepCount: ai6.stepCountIs, streamText } as unknown as Ai,
    createOpenAI: openai.createOpenAI as unknown as typeof createOpenAI,
    createOpenAICompatible: compatible.createOpenAICompatible as unknown as typeof createOpenAICompatible,
    createAnthropic: anthropic.createAnthropic as unknown as typeof createAnthropic,
  }
}

/** The newest major version, and in a long run the previous one, each with its providers. */
export const majors = isLongRun ? [newest, await previous()] : [newest]

/** Every way in which they call an OpenAI-like API. */
export const entrances: readonly Entrance[] = majors.flatMap((major) => {
  const { name, ai } = major
  const compatible = (settings: Settings) =>
    major.createOpenAICompatible({
      ...settings,
      name: 'svc-router',
      includeUsage: true,
      supportsStructuredOutputs: true,
    })
  return [
    {
      name: `${name}, @ai-sdk/openai (responses)`,
      ai,
      format: 'openai-responses' as const,
      model: (settings: Settings, profile: string) => major.createOpenAI(settings)(profile),
      embedding: (settings: Settings, profile: string) => major.createOpenAI(settings).embedding(profile),
    },
    {
      name: `${name}, @ai-sdk/openai .chat`,
      ai,
      format: 'openai-chat' as const,
      model: (settings: Settings, profile: string) => major.createOpenAI(settings).chat(profile),
    },
    {
      name: `${name}, @ai-sdk/openai-compatible`,
      ai,
      format: 'openai-chat' as const,
      model: (settings: Settings, profile: string) => compatible(settings)(profile),
      embedding: (settings: Settings, profile: string) => compatible(settings).embeddingModel(profile),
    },
  ]
})

export interface Entrance {
  readonly name: string
  readonly ai: Ai
  /** The format that it uses. */
  readonly format: 'openai-chat' | 'openai-responses'
  readonly model: (settings: Settings, profile: string) => LanguageModel
  /** Its embedding model, if it has any. */
  readonly embedding?: (settings: Settings, profile: string) => EmbeddingModel
}

export interface Settings {
  readonly baseURL: string
  readonly apiKey: string
  readonly fetch: typeof fetch
  readonly headers?: Record<string, string>
}

/** Settings as in a README, except for a `fetch` that records every HTTP request. */
export function counted(service: Service, apiKey = service.key): { settings: Settings; traffic: Traffic } {
  const { fetch, traffic } = countingFetch()
  return { settings: { baseURL: service.baseUrl, apiKey, fetch }, traffic }
}
