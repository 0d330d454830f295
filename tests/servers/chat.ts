import OpenAI from 'openai'
import { pixel } from '../clients/openai-clients.ts'
import { answerSchema, toolParameters, weatherTool, withinMs } from './inputs.ts'
import { IncompleteAnswer, readArguments, unknownEnd, type Answer, type Convention, type Question } from './outcome.ts'

type Request = OpenAI.ChatCompletionCreateParamsNonStreaming

function write(model: string, { prompt, maxTokens, hasTool, hasSchema, hasImage, hasEffort, stop }: Question): Request {
  const content = [
    { type: 'text' as const, text: prompt },
    { type: 'image_url' as const, image_url: { url: pixel } },
  ]
  return {
    model,
    temperature: 0,
    max_tokens: maxTokens,
    messages: [{ role: 'user', content: hasImage ? content : prompt }],
    // `transformers serve` streams by default.
    stream: false,
    ...(hasEffort && { reasoning_effort: 'high' }),
    ...(stop !== undefined && { stop: [stop] }),
    ...(hasTool && {
      tools: [{ type: 'function', function: { ...weatherTool, parameters: toolParameters } }],
    }),
    ...(hasSchema && {
      response_format: { type: 'json_schema', json_schema: { name: 'weather', strict: true, schema: answerSchema } },
    }),
  }
}

const ends: Readonly<Record<string, Answer['end']>> = { stop: 'stop', length: 'length', tool_calls: 'tools' }

/** Collects an answer from one body or from chunks. */
class CollectedAnswer {
  text = ''
  end: string | null | undefined
  usage: OpenAI.CompletionUsage | null | undefined
  readonly calls: { name: string; arguments: string }[] = []

  addChunk({ usage, choices: [choice] }: OpenAI.ChatCompletionChunk): void {
    this.usage = usage ?? this.usage
    if (choice === undefined) return
    this.end = choice.finish_reason ?? this.end
    this.text += choice.delta.content ?? ''
    for (const { index, function: part } of choice.delta.tool_calls ?? []) {
      const call = (this.calls[index] ??= { name: '', arguments: '' })
      call.name += part?.name ?? ''
      call.arguments += part?.arguments ?? ''
    }
  }

  addWhole({ usage, choices: [choice] }: OpenAI.ChatCompletion): void {
    this.usage = usage
    this.end = choice?.finish_reason
    this.text = choice?.message.content ?? ''
    for (const call of choice?.message.tool_calls ?? []) if (call.type === 'function') this.calls.push(call.function)
  }

  /** @throws IncompleteAnswer if the answer has no finish reason */
  read(): Answer {
    const { text, calls, end, usage } = this
    // vLLM sends `abort` if it aborted the answer itself.
    if (end === undefined || end === null || end === 'abort') throw new IncompleteAnswer()
    return {
      text,
      calls: calls.map((call) => ({ name: call.name, arguments: readArguments(call.arguments) })),
      end: ends[end] ?? unknownEnd(end),
      tokens: { input: usage?.prompt_tokens, output: usage?.completion_tokens },
    }
  }
}

export const chat: Convention = {
  name: 'chat',
  async ask({ baseUrl, key, model }, question, { streamed, signal, onPiece }) {
    const client = new OpenAI({ baseURL: baseUrl, apiKey: key, maxRetries: 0, timeout: withinMs })
    const request = write(model, question)
    const parts = new CollectedAnswer()
    if (streamed) {
      const body = { ...request, stream: true as const, stream_options: { include_usage: true } }
      for await (const chunk of await client.chat.completions.create(body, { signal })) {
        onPiece?.()
        parts.addChunk(chunk)
      }
    } else {
      parts.addWhole(await client.chat.completions.create(request, { signal }))
    }
    return parts.read()
  },
}
