import Anthropic from '@anthropic-ai/sdk'
import { pixel } from '../clients/openai-clients.ts'
import { answerSchema, toolParameters, weatherTool, withinMs } from './inputs.ts'
import { unknownEnd, type Answer, type Convention, type Question } from './outcome.ts'

// The SDK no longer declares it, because the newest models reject it.
const greedy = { temperature: 0 }

type Request = Anthropic.MessageCreateParamsNonStreaming

function write(model: string, { prompt, maxTokens, hasTool, hasSchema, hasImage, hasEffort, stop }: Question): Request {
  const data = pixel.slice(pixel.indexOf(',') + 1)
  const image = { type: 'image' as const, source: { type: 'base64' as const, media_type: 'image/png' as const, data } }
  return {
    model,
    ...greedy,
    max_tokens: maxTokens,
    messages: [{ role: 'user', content: [{ type: 'text', text: prompt }, ...(hasImage ? [image] : [])] }],
    ...(hasEffort && { thinking: { type: 'adaptive' } }),
    ...(stop !== undefined && { stop_sequences: [stop] }),
    ...(hasTool && { tools: [{ ...weatherTool, input_schema: toolParameters }] }),
    output_config: {
      ...(hasEffort && { effort: 'high' }),
      ...(hasSchema && { format: { type: 'json_schema', schema: answerSchema } }),
    },
  }
}

const ends: Readonly<Record<string, Answer['end']>> = {
  end_turn: 'stop',
  stop_sequence: 'stop',
  max_tokens: 'length',
  tool_use: 'tools',
}

export const messages: Convention = {
  name: 'messages',
  async ask({ baseUrl, key, model }, question, { streamed, signal, onPiece }) {
    const baseURL = baseUrl.replace(/\/v1$/, '')
    const client = new Anthropic({ baseURL, apiKey: key, maxRetries: 0, timeout: withinMs })
    const request = write(model, question)
    const {
      content,
      stop_reason: end,
      usage,
    } = streamed
      ? await client.messages
          .stream(request, { signal })
          .on('text', () => onPiece?.())
          .finalMessage()
      : await client.messages.create(request, { signal })
    return {
      text: content.map((block) => (block.type === 'text' ? block.text : '')).join(''),
      calls: content.flatMap((block) =>
        block.type === 'tool_use' ? [{ name: block.name, arguments: block.input }] : [],
      ),
      end: ends[end ?? ''] ?? unknownEnd(String(end)),
      // This convention counts cached input tokens separately.
      tokens: { input: usage.input_tokens + (usage.cache_read_input_tokens ?? 0), output: usage.output_tokens },
    }
  },
}
