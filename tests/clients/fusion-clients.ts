import Anthropic from '@anthropic-ai/sdk'
import { zodOutputFormat } from '@anthropic-ai/sdk/helpers/zod'
import type { LanguageModel } from 'ai'
import type OpenAI from 'openai'
import { z } from 'zod'
import type { JsonObject } from '../../src/domain/json.ts'
import type { Service } from '../service.ts'
import { entrances, majors as aiMajors } from './ai-clients.ts'
import { textOf } from './anthropic-clients.ts'
import { countingFetch, type Traffic } from './counting-fetch.ts'
import { collect, majors as openaiMajors, pixel, weatherIn, weatherParameters } from './openai-clients.ts'

/** One way to request a deliberation: the fusion profile, or another profile with the fusion tool. */
export interface Way {
  readonly model: string
  /** Added to the request after the client's own tools, because some clients do not support unknown tools. */
  readonly tool?: JsonObject
}

/**
 * The requests of a connected client. Each resolves with the result that a user would see, and rejects with the error of
 * the client.
 */
export interface ClientRequests {
  readonly whole: (prompt: string) => Promise<string>
  readonly streamed: (prompt: string) => Promise<string>
  /** Uses the client's helper for streams, if it has one. */
  readonly helped?: (prompt: string) => Promise<string>
  /** Answers calls of `get_weather` until the model calls none, and returns the final text. */
  readonly loop: (prompt: string, stream: boolean) => Promise<string>
  readonly object: () => Promise<unknown>
  /** ClientRequests about a one-pixel image. */
  readonly image: (prompt: string) => Promise<string>
}

export interface Client {
  readonly name: string
  readonly format: 'openai-chat' | 'openai-responses' | 'anthropic-messages'
  readonly connect: (baseUrl: string, apiKey: string, way: Way, fetching: typeof fetch) => ClientRequests
}

const schema = z.object({ city: z.string(), degrees: z.number() })
const max_tokens = 4_096
const maxSteps = 3
const weather = { name: 'get_weather', description: 'The weather of a city.', parameters: weatherParameters }

/** Connects a client to the service. Returns its requests and a record of its HTTP traffic. */
export function connected(
  { connect }: Client,
  { baseUrl, key }: Service,
  way: Way,
  apiKey = key,
): { asks: ClientRequests; traffic: Traffic } {
  const { fetch, traffic } = countingFetch()
  return { asks: connect(baseUrl, apiKey, way, attaching(fetch, way)), traffic }
}

export const clients: readonly Client[] = [
  ...openaiMajors.flatMap((major): Client[] => [
    {
      name: `${major.name}, chat`,
      format: 'openai-chat',
      connect: (baseURL, apiKey, { model }, fetching) =>
        overChat(new major.OpenAI({ baseURL, apiKey, fetch: fetching }), model, major.zodResponseFormat),
    },
    {
      name: `${major.name}, responses`,
      format: 'openai-responses',
      connect: (baseURL, apiKey, { model }, fetching) =>
        overResponses(new major.OpenAI({ baseURL, apiKey, fetch: fetching }), model, major.zodTextFormat),
    },
  ]),
  ...entrances.map(({ name, ai, format, model: open }): Client => ({
    name,
    format,
    connect: (baseURL, apiKey, { model }, fetching) => overAiSdk(ai, open({ baseURL, apiKey, fetch: fetching }, model)),
  })),
  ...aiMajors.map(({ name, ai, createAnthropic }): Client => ({
    name: `${name}, @ai-sdk/anthropic`,
    format: 'anthropic-messages',
    connect: (baseURL, apiKey, { model }, fetching) =>
      overAiSdk(ai, createAnthropic({ baseURL, apiKey, fetch: fetching })(model)),
  })),
  {
    name: '@anthropic-ai/sdk',
    format: 'anthropic-messages',
    connect: (baseUrl, apiKey, { model }, fetching) =>
      overMessages(new Anthropic({ baseURL: new URL(baseUrl).origin, apiKey, fetch: fetching }), model),
  },
]

function attaching(fetching: typeof fetch, { tool }: Way): typeof fetch {
  if (tool === undefined) return fetching
  return (input, init) => {
    const body = JSON.parse(init!.body as string) as JsonObject & { tools?: JsonObject[] }
    return fetching(input, { ...init, body: JSON.stringify({ ...body, tools: [...(body.tools ?? []), tool] }) })
  }
}

function weatherOf(json: string): string {
  return weatherIn((JSON.parse(json) as { city: string }).city)
}

type OpenaiMajor = (typeof openaiMajors)[number]

function overChat(client: OpenAI, model: string, format: OpenaiMajor['zodResponseFormat']): ClientRequests {
  const asked = (content: OpenAI.ChatCompletionUserMessageParam['content']) => ({
    model,
    messages: [{ role: 'user' as const, content }],
  })
  const whole = async (content: OpenAI.ChatCompletionUserMessageParam['content']): Promise<string> =>
    (await client.chat.completions.create(asked(content))).choices[0]!.message.content!
  return {
    whole,
    async streamed(prompt) {
      const chunks = await collect(await client.chat.completions.create({ ...asked(prompt), stream: true }))
      return chunks.map(({ choices }) => choices[0]?.delta.content ?? '').join('')
    },
    helped: async (prompt) => (await client.chat.completions.stream(asked(prompt)).finalContent())!,
    async loop(prompt, stream) {
      const tools = [{ type: 'function' as const, function: { ...weather, function: weatherOf } }]
      const request = { ...asked(prompt), tools }
      const runner = stream
        ? client.chat.completions.runTools({ ...request, stream: true })
        : client.chat.completions.runTools(request)
      return (await runner.finalContent())!
    },
    async object() {
      const request = { ...asked('The weather?'), response_format: format(schema, 'weather') }
      return (await client.chat.completions.parse(request)).choices[0]!.message.parsed
    },
    image: (text) =>
      whole([
        { type: 'text', text },
        { type: 'image_url', image_url: { url: pixel } },
      ]),
  }
}

function overResponses(client: OpenAI, model: string, format: OpenaiMajor['zodTextFormat']): ClientRequests {
  return {
    whole: async (input) => (await client.responses.create({ model, input })).output_text,
    async streamed(input) {
      const events = await collect(await client.responses.create({ model, input, stream: true }))
      return events.map((event) => (event.type === 'response.output_text.delta' ? event.delta : '')).join('')
    },
    helped: async (input) => (await client.responses.stream({ model, input }).finalResponse()).output_text,
    async loop(prompt, stream) {
      const tools = [{ type: 'function' as const, ...weather, strict: true }]
      const input: OpenAI.Responses.ResponseInput = [{ role: 'user', content: prompt }]
      for (let step = 0; step < maxSteps; step++) {
        const request = { model, input, tools, store: false }
        const asking = stream ? client.responses.stream(request).finalResponse() : client.responses.create(request)
        const { output, output_text }: OpenAI.Responses.Response = await asking
        const calls = output.filter((item) => item.type === 'function_call')
        if (calls.length === 0) return output_text
        input.push(...(output as OpenAI.Responses.ResponseInput))
        for (const { call_id, arguments: json } of calls)
          input.push({ type: 'function_call_output', call_id, output: weatherOf(json) })
      }
      throw new Error('the tool loop does not end')
    },
    async object() {
      const text = { format: format(schema, 'weather') }
      return (await client.responses.parse({ model, input: 'The weather?', text })).output_parsed
    },
    async image(text) {
      const content: OpenAI.Responses.ResponseInputMessageContentList = [
        { type: 'input_text', text },
        { type: 'input_image', image_url: pixel, detail: 'auto' },
      ]
      return (await client.responses.create({ model, input: [{ role: 'user', content }] })).output_text
    },
  }
}

function overAiSdk(
  { generateText, streamText, tool, isStepCount, Output }: Entrances['ai'],
  model: LanguageModel,
): ClientRequests {
  const get_weather = tool({
    description: weather.description,
    inputSchema: z.object({ city: z.string() }),
    execute: ({ city }) => weatherIn(city),
  })
  return {
    whole: async (prompt) => (await generateText({ model, prompt })).text,
    async streamed(prompt) {
      const errors: unknown[] = []
      const { textStream } = streamText({ model, prompt, onError: ({ error }) => void errors.push(error) })
      const text = (await collect(textStream)).join('')
      if (errors.length > 0) throw errors[0]
      return text
    },
    async loop(prompt, stream) {
      const request = { model, prompt, tools: { get_weather }, stopWhen: isStepCount(maxSteps) }
      return stream ? streamText(request).text : (await generateText(request)).text
    },
    object: async () =>
      (await generateText({ model, output: Output.object({ schema }), prompt: 'The weather?' })).output,
    async image(text) {
      const content = [
        { type: 'text' as const, text },
        { type: 'file' as const, data: new URL(pixel), mediaType: 'image/png' },
      ]
      return (await generateText({ model, messages: [{ role: 'user', content }] })).text
    },
  }
}

type Entrances = (typeof entrances)[number]

function overMessages(client: Anthropic, model: string): ClientRequests {
  const asked = (content: Anthropic.MessageParam['content']) => ({
    model,
    max_tokens,
    messages: [{ role: 'user' as const, content }],
  })
  const whole = async (content: Anthropic.MessageParam['content']): Promise<string> =>
    textOf(await client.messages.create(asked(content)))
  return {
    whole,
    async streamed(prompt) {
      const events = await collect(await client.messages.create({ ...asked(prompt), stream: true }))
      return events
        .map((event) =>
          event.type === 'content_block_delta' && event.delta.type === 'text_delta' ? event.delta.text : '',
        )
        .join('')
    },
    helped: async (prompt) => textOf(await client.messages.stream(asked(prompt)).finalMessage()),
    async loop(prompt, stream) {
      const tools = [{ name: weather.name, input_schema: weatherParameters }]
      const messages: Anthropic.MessageParam[] = [{ role: 'user', content: prompt }]
      for (let step = 0; step < maxSteps; step++) {
        const request = { model, max_tokens, tools, messages }
        const asking = stream ? client.messages.stream(request).finalMessage() : client.messages.create(request)
        const message = await asking
        const calls = message.content.filter((block) => block.type === 'tool_use')
        if (calls.length === 0) return textOf(message)
        const content = calls.map(({ id, input }) => ({
          type: 'tool_result' as const,
          tool_use_id: id,
          content: weatherIn((input as { city: string }).city),
        }))
        messages.push({ role: 'assistant', content: message.content }, { role: 'user', content })
      }
      throw new Error('the tool loop does not end')
    },
    async object() {
      const output_config = { format: zodOutputFormat(schema) }
      return (await client.messages.parse({ ...asked('The weather?'), output_config })).parsed_output
    },
    image: (text) =>
      whole([
        { type: 'text', text },
        {
          type: 'image',
          source: { type: 'base64', media_type: 'image/png', data: pixel.slice(pixel.indexOf(',') + 1) },
        },
      ]),
  }
}
