import type { JsonObject } from '../../domain/json.ts'
import type { ClientFormatId } from '../../domain/format-id.ts'
import { maxQuestionTokens, type RouteQuestion } from '../../domain/route-plan.ts'
import { bodyShape, JsonScan } from '../../formats/json-scan.ts'
import type { ModelRequest } from '../ports.ts'

/** About one token. */
const filler = 'word'
/** One gray pixel. */
const picture = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNoAAAAggCBd81ytgAAAABJRU5ErkJggg=='
const pictureUrl = `data:image/png;base64,${picture}`
const parameters = { type: 'object', properties: { name: { type: 'string' } } }
const messagesMaxTokens = 1_024

/** Writes the sample request in each format. */
const bodies: Readonly<Record<ClientFormatId, (of: RouteQuestion, text: string) => JsonObject>> = {
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

/** A request with these properties, as a client would send it. Its text is filler. */
export function sampleRequest(question: RouteQuestion): ModelRequest {
  const tokens = Math.min(maxQuestionTokens, Math.max(1, Math.floor(question.tokens)))
  const body = bodies[question.format](question, filler.repeat(tokens))
  const bytes = Buffer.from(JSON.stringify(body))
  const scan = new JsonScan(bodyShape)
  scan.push(bytes)
  return { id: 'req_dryrun', format: question.format, bytes, members: scan.members(bytes), body, timeoutMs: undefined }
}
