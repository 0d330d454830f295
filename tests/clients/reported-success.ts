import Anthropic from '@anthropic-ai/sdk'
import { jsonSchema, tool, type LanguageModel } from 'ai'
import type OpenAI7 from 'openai'
import { majors as aiMajors } from './ai-clients.ts'
import { majors as openaiMajors } from './openai-clients.ts'

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

function aiSdk(
  { streamText }: (typeof aiMajors)[number]['ai'],
  connect: (question: Question) => LanguageModel,
): Client {
  return async (question) => {
    let wentWell = false
    let failed = false
    const { fullStream } = streamText({
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

const ofOpenai = openaiMajors.flatMap(({ name, OpenAI }) => [
  [`${name}, chat completions`, openaiChat(OpenAI)] as const,
  [`${name}, responses`, openaiResponses(OpenAI)] as const,
])

const ofAiSdk = aiMajors.flatMap((major) => {
  const { name, ai, createOpenAI, createOpenAICompatible, createAnthropic } = major
  const compatible = (question: Question) => createOpenAICompatible({ ...question, name: 'svc-router' })
  return [
    [`${name}, responses`, aiSdk(ai, (question) => createOpenAI(question)(question.model))] as const,
    [`${name}, chat completions`, aiSdk(ai, (question) => createOpenAI(question).chat(question.model))] as const,
    [`${name}, openai-compatible`, aiSdk(ai, (question) => compatible(question)(question.model))] as const,
    [`${name}, anthropic`, aiSdk(ai, (question) => createAnthropic(question)(question.model))] as const,
  ]
})

/** The real streaming clients by name. */
export const realClients: Readonly<Record<string, Client>> = Object.fromEntries([
  ...ofOpenai,
  ...ofAiSdk,
  ['@anthropic-ai/sdk, messages.stream', anthropic('stream')],
  ['@anthropic-ai/sdk, messages.create', anthropic('create')],
])
