import type { ConversationFormatId } from '../../src/domain/format-id.ts'
import type { JsonObject } from '../../src/domain/json.ts'

/** The client side of a format, for tests that run with all formats. */
interface ClientSide {
  /** A request; tests may add members. */
  readonly ask: (prompt: string, stream: boolean) => JsonObject
  /** Whether a stream ends successfully in this format. */
  readonly saysSuccess: (text: string) => boolean
  /** Whether a stream ends with a failure in this format. */
  readonly saysFailure: (text: string) => boolean
}

const model = 'svc-router/frontier'
const weather = { name: 'get_weather', parameters: { type: 'object', properties: {} } }

/** Every client format; a missing one is a type error. They do not use our own readers. */
export const clientSides: Readonly<Record<ConversationFormatId, ClientSide>> = {
  'openai-chat': {
    ask: (prompt, stream) => ({
      model,
      stream,
      messages: [{ role: 'user', content: prompt }],
      tools: [{ type: 'function', function: weather }],
      ...(stream && { stream_options: { include_usage: true } }),
    }),
    saysSuccess: (text) => /"finish_reason":\s*"/.test(text) && !/^data: \{"error":/m.test(text),
    saysFailure: (text) => /^data: \{"error":\{/m.test(text) && text.endsWith('data: [DONE]\n\n'),
  },
  'openai-responses': {
    ask: (prompt, stream) => ({
      model,
      stream,
      // A stored response would have our own ID and say that it is stored.
      store: false,
      input: [{ role: 'user', content: prompt }],
      tools: [{ type: 'function', ...weather }],
    }),
    saysSuccess: (text) => /^data: .*"type":"response\.(?:completed|incomplete)"/m.test(text),
    saysFailure: (text) =>
      /^event: error\n.*\n\nevent: response\.failed\ndata: .*\n\ndata: \[DONE\]\n\n$/m.test(text.slice(-4_000)),
  },
  'anthropic-messages': {
    ask: (prompt, stream) => ({
      model,
      stream,
      max_tokens: 100,
      messages: [{ role: 'user', content: prompt }],
      tools: [{ name: weather.name, input_schema: weather.parameters }],
    }),
    saysSuccess: (text) => /^data: .*"type":\s*"message_stop"/m.test(text),
    saysFailure: (text) => /event: error\ndata: \{.*\}\n\n$/.test(text),
  },
}
