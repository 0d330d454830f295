import { createAnthropic } from '@ai-sdk/anthropic'
import { createOpenAI } from '@ai-sdk/openai'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import Anthropic from '@anthropic-ai/sdk'
import { jsonSchema, streamText, tool, type LanguageModel } from 'ai'
import { streamText as streamText6 } from 'ai-6'
import { createAnthropic as createAnthropic3 } from 'ai-sdk-anthropic-3'
import { createOpenAI as createOpenAI3 } from 'ai-sdk-openai-3'
import { createOpenAICompatible as createCompatible2 } from 'ai-sdk-openai-compatible-2'
import OpenAI7 from 'openai'
import OpenAI6 from 'openai-6'
import { isLongRun } from '../long-run.ts'

/** The prompt, and the service and model to ask. */
interface Question {
  readonly baseURL: string
  readonly apiKey: string
  readonly model: string
  readonly prompt: string
}

/** Streams with a real client as its documentation shows; returns whether the client reports success. */
type Client = (question: Question) => Promise<boolean>

const weather = { name: 'get_weather', parameters: { type: 'object', properties: {} } } as const

/** Whether a stream can be read to its end without an exception. */
async function endsWell(open: () => Promise<AsyncIterable<unknown>>): Promise<boolean> {
  try {
    for await (const _ of await open());
    return true
  } catch {
    return false
  }
}

function openaiChat(OpenAI: typeof OpenAI7): Client {
  return ({ baseURL, apiKey, model, prompt }) => {
    const client = new OpenAI({ baseURL, apiKey, maxRetries: 0 })
    const messages = [{ role: 'user' as const, content: prompt }]
    const tools = [{ type: 'function' as const, function: weather }]
    return endsWell(() => client.chat.completions.create({ model, messages, tools, stream: true }))
  }
}

function openaiResponses(OpenAI: typeof OpenAI7): Client {
  return ({ baseURL, apiKey, model, prompt }) => {
    const client = new OpenAI({ baseURL, apiKey, maxRetries: 0 })
    const tools = [{ type: 'function' as const, strict: false, ...weather }]
    return endsWell(() => client.responses.create({ model, input: prompt, tools, stream: true }))
  }
}

/** Both of its streams: `stream`, which also assembles the message, and `create`, which does not. */
function anthropic(how: 'stream' | 'create'): Client {
  return async ({ baseURL, apiKey, model, prompt }) => {
    const client = new Anthropic({ baseURL: baseURL.replace(/\/v1$/, ''), apiKey, maxRetries: 0 })
    const messages = [{ role: 'user' as const, content: prompt }]
    const tools = [{ name: weather.name, input_schema: weather.parameters }]
    const request = { model, max_tokens: 100, messages, tools }
    if (how === 'create') return endsWell(() => client.messages.create({ ...request, stream: true }))
    return client.messages
      .stream(request)
      .finalMessage()
      .then(({ stop_reason }) => stop_reason !== null)
      .catch(() => false)
  }
}

function aiSdk(stream: typeof streamText, connect: (question: Question) => LanguageModel): Client {
  return async (question) => {
    let wentWell = false
    let failed = false
    const { fullStream } = stream({
      model: connect(question),
      prompt: question.prompt,
      maxRetries: 0,
      maxOutputTokens: 1_000,
      tools: { get_weather: tool({ inputSchema: jsonSchema({ ...weather.parameters }) }) },
      onError: () => {
        failed = true
      },
    })
    for await (const part of fullStream) {
      if (part.type === 'error') failed = true
      if (part.type === 'finish') wentWell = ['stop', 'tool-calls', 'length'].includes(part.finishReason)
    }
    return wentWell && !failed
  }
}

/** The two major versions of `ai` under one type: the parts used here are the same in both. */
const stream6 = streamText6 as unknown as typeof streamText
const openai3 = createOpenAI3 as unknown as typeof createOpenAI
const anthropic3 = createAnthropic3 as unknown as typeof createAnthropic
const compatible2 = createCompatible2 as unknown as typeof createOpenAICompatible

const newest: Readonly<Record<string, Client>> = {
  'openai 7, chat completions': openaiChat(OpenAI7),
  'openai 7, responses': openaiResponses(OpenAI7),
  'ai 7, responses': aiSdk(streamText, (question) => createOpenAI(question)(question.model)),
  'ai 7, chat completions': aiSdk(streamText, (question) => createOpenAI(question).chat(question.model)),
  'ai 7, openai-compatible': aiSdk(streamText, (question) =>
    createOpenAICompatible({ ...question, name: 'svc-router', includeUsage: true })(question.model),
  ),
  '@anthropic-ai/sdk, messages.stream': anthropic('stream'),
  '@anthropic-ai/sdk, messages.create': anthropic('create'),
  'ai 7, anthropic': aiSdk(streamText, (question) => createAnthropic(question)(question.model)),
}

const older: Readonly<Record<string, Client>> = {
  'openai 6, chat completions': openaiChat(OpenAI6 as unknown as typeof OpenAI7),
  'openai 6, responses': openaiResponses(OpenAI6 as unknown as typeof OpenAI7),
  'ai 6, anthropic': aiSdk(stream6, (question) => anthropic3(question)(question.model)),
  'ai 6, responses': aiSdk(stream6, (question) => openai3(question)(question.model)),
  'ai 6, chat completions': aiSdk(stream6, (question) => openai3(question).chat(question.model)),
  'ai 6, openai-compatible': aiSdk(stream6, (question) =>
    compatible2({ ...question, name: 'svc-router', includeUsage: true })(question.model),
  ),
}

/** The real streaming clients by name: the newest major versions, and in a long run the previous ones. */
export const realClients: Readonly<Record<string, Client>> = isLongRun ? { ...newest, ...older } : newest
