import type { ConversationFormatId } from '../../src/domain/format-id.ts'
import type { JsonObject } from '../../src/domain/json.ts'

/** How the client side of a format is used in a test that is for all of them. */
interface ClientSide {
  /** A request, to which more members may be added. */
  readonly ask: (prompt: string, stream: boolean) => JsonObject
  /** Whether the bytes of a stream tell a reader of this format that the answer is complete and good. */
  readonly saysSuccess: (text: string) => boolean
  /** Whether they tell that it failed. */
  readonly saysFailure: (text: string) => boolean
}

const model = 'svc-router/frontier'
const weather = { name: 'get_weather', parameters: { type: 'object', properties: {} } }

/** Every format that clients speak: one of which nothing is known here does not compile. Judged without our own readers. */
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
      // What is kept has an id of ours, and says that it is kept.
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
