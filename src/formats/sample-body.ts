import type { JsonObject } from '../domain/json.ts'
import type { ClientFormatId } from './format.ts'

/** What a sample request contains. */
interface Sample {
  readonly profile: string
  readonly stream: boolean
  readonly images: boolean
  readonly tools: boolean
}

/** One gray pixel. */
const picture = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNoAAAAggCBd81ytgAAAABJRU5ErkJggg=='
const pictureUrl = `data:image/png;base64,${picture}`
const parameters = { type: 'object', properties: { name: { type: 'string' } } }
const messagesMaxTokens = 1_024

/** Writes the body of a sample request in each format. */
export const sampleBodies: Readonly<Record<ClientFormatId, (of: Sample, text: string) => JsonObject>> = {
  'openai-chat': ({ profile, stream, images, tools }, text) => ({
    model: profile,
    stream,
    messages: [
      {
        role: 'user',
        content: [{ type: 'text', text }, ...(images ? [{ type: 'image_url', image_url: { url: pictureUrl } }] : [])],
      },
    ],
    ...(tools && { tools: [{ type: 'function', function: { name: 'look_up', parameters } }] }),
  }),
  'openai-responses': ({ profile, stream, images, tools }, text) => ({
    model: profile,
    stream,
    input: [
      {
        role: 'user',
        content: [{ type: 'input_text', text }, ...(images ? [{ type: 'input_image', image_url: pictureUrl }] : [])],
      },
    ],
    ...(tools && { tools: [{ type: 'function', name: 'look_up', parameters, strict: false }] }),
  }),
  'anthropic-messages': ({ profile, stream, images, tools }, text) => ({
    model: profile,
    stream,
    max_tokens: messagesMaxTokens,
    messages: [
      {
        role: 'user',
        content: [
          { type: 'text', text },
          ...(images ? [{ type: 'image', source: { type: 'base64', media_type: 'image/png', data: picture } }] : []),
        ],
      },
    ],
    ...(tools && { tools: [{ name: 'look_up', input_schema: parameters }] }),
  }),
  'openai-completions': ({ profile, stream }, text) => ({ model: profile, stream, prompt: text }),
  'openai-embeddings': ({ profile }, text) => ({ model: profile, input: text }),
}
