import OpenAI from 'openai'
import { pixel } from '../clients/openai-clients.ts'
import { answerSchema, toolParameters, weatherTool, withinMs } from './inputs.ts'
import { IncompleteAnswer, readArguments, unknownEnd, type Answer, type Convention, type Question } from './outcome.ts'

type Request = OpenAI.Responses.ResponseCreateParamsNonStreaming

// The type requires `strict`, which would become part of the prompt.
const laxParameters = { parameters: toolParameters } as { parameters: typeof toolParameters; strict: null }

function write(model: string, { prompt, maxTokens, hasTool, hasSchema, hasImage, hasEffort }: Question): Request {
  const content = [
    { type: 'input_text' as const, text: prompt },
    { type: 'input_image' as const, image_url: pixel, detail: 'auto' as const },
  ]
  return {
    model,
    temperature: 0,
    max_output_tokens: maxTokens,
    store: false,
    input: hasImage ? [{ role: 'user', content }] : prompt,
    ...(hasEffort && { reasoning: { effort: 'high' } }),
    ...(hasTool && { tools: [{ type: 'function', ...weatherTool, ...laxParameters }] }),
    ...(hasSchema && {
      text: { format: { type: 'json_schema', name: 'weather', strict: true, schema: answerSchema } },
    }),
  }
}

function read({ status, incomplete_details: details, output, usage }: OpenAI.Responses.Response): Answer {
  const isTruncated = status === 'incomplete' && details?.reason === 'max_output_tokens'
  if (status !== 'completed' && !isTruncated) unknownEnd(String(status))
  const parts = output.flatMap((item) => (item.type === 'message' ? item.content : []))
  const calls = output.filter((item) => item.type === 'function_call')
  return {
    text: parts.map((part) => (part.type === 'output_text' ? part.text : '')).join(''),
    calls: calls.map((call) => ({ name: call.name, arguments: readArguments(call.arguments) })),
    end: isTruncated ? 'length' : calls.length > 0 ? 'tools' : 'stop',
    tokens: { input: usage?.input_tokens, output: usage?.output_tokens },
  }
}

export const responses: Convention = {
  name: 'responses',
  async ask({ baseUrl, key, model }, question, { streamed, signal, onPiece }) {
    const client = new OpenAI({ baseURL: baseUrl, apiKey: key, maxRetries: 0, timeout: withinMs })
    const request = write(model, question)
    if (!streamed) return read(await client.responses.create(request, { signal }))
    let whole: OpenAI.Responses.Response | undefined
    for await (const event of await client.responses.create({ ...request, stream: true }, { signal })) {
      if (event.type === 'response.output_text.delta') onPiece?.()
      if (event.type === 'response.completed' || event.type === 'response.incomplete') whole = event.response
    }
    if (whole === undefined) throw new IncompleteAnswer()
    return read(whole)
  },
}
