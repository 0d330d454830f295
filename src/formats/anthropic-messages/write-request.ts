import type { Conversation, Hints, OutputFormat, Sampling } from '../../domain/conversation.ts'
import type { JsonObject } from '../../domain/json.ts'
import { allowedNote } from '../allowed-tools.ts'
import { assertTranslatable, unsupported } from '../assert-translatable.ts'
import type { Draft } from '../fields.ts'
import type { WriteTarget } from '../format.ts'
import { ToolNames } from '../tool-names.ts'
import { closedSchema } from './json-schema.ts'
import { type ModelTraits, traitsFor } from './model-traits.ts'
import { markBody } from './write-marks.ts'
import { writeMessages } from './write-messages.ts'
import { isEncodable } from './write-parts.ts'
import { writeThinking } from './write-thinking.ts'
import { writeTools } from './write-tools.ts'

/** Providers reject longer user names. */
const maxUserCharacters = 256

/** The request body for a provider of messages. @throws ServiceError if messages cannot express the request */
export function writeRequest(conversation: Conversation, target: WriteTarget): JsonObject {
  assertTranslatable(conversation)
  const { sampling } = conversation
  if ((sampling.choices ?? 1) > 1) {
    throw unsupported('n', 'The backends of this profile return one answer per request. Set n to 1, or leave it out.')
  }
  const traits = traitsFor(target)
  const names = new ToolNames(conversation.tools)
  const replaysReasoning = target.dialect.replaysReasoning === true
  const { system, messages, called } = writeMessages(conversation, traits, names, replaysReasoning)
  const maxTokens = sampling.maxOutputTokens ?? traits.maxTokens
  const body: Draft<JsonObject> = { model: target.model, max_tokens: maxTokens, messages, stream: target.stream }
  const instruction = writeOutputFormat(body, conversation.outputFormat, traits)
  if (system.length > 0) body['system'] = system
  writeTools(body, conversation, called, names, traits)
  if (traits.cacheMarks) markBody(body, target)
  // After the marks, because the next turn does not repeat it here.
  addNote(messages, [instruction, allowedNote(conversation, names)])
  const thinks = writeThinking(body, conversation, traits, maxTokens)
  if (traits.samples && !thinks) writeSampling(body, sampling)
  const stop = sampling.stop?.filter(isEncodable) ?? []
  if (stop.length > 0) body['stop_sequences'] = stop
  writeHints(body, conversation.hints)
  for (const field of target.dialect.refusedFields) delete body[field]
  return body
}

/** Adds what the model must know for this answer alone, after everything that the model reads before it answers. */
function addNote(messages: readonly JsonObject[], notes: readonly (string | undefined)[]): void {
  const content = messages.findLast(({ role }) => role !== 'assistant')?.['content'] as JsonObject[] | undefined
  for (const text of notes) if (text !== undefined) content?.push({ type: 'text', text })
}

function writeHints(body: Draft<JsonObject>, { user, safetyIdentifier, serviceTier }: Hints): void {
  const name = user ?? safetyIdentifier ?? ''
  if (name !== '' && name.length <= maxUserCharacters) body['metadata'] = { user_id: name }
  if (serviceTier === 'auto') body['service_tier'] = 'auto'
  else if (serviceTier === 'default') body['service_tier'] = 'standard_only'
}

/** Thinking models accept none of these; newer models accept only one of temperature and top_p. */
function writeSampling(body: Draft<JsonObject>, { temperature, topP, topK }: Sampling): void {
  // Other formats allow up to 2.
  if (temperature !== undefined) body['temperature'] = Math.min(1, Math.max(0, temperature))
  else if (topP !== undefined) body['top_p'] = topP
  if (topK !== undefined) body['top_k'] = topK
}

/** Adds the output format; returns an instruction for the model if no field can express it. */
function writeOutputFormat(
  body: Draft<JsonObject>,
  format: OutputFormat | undefined,
  traits: ModelTraits,
): string | undefined {
  if (format === undefined || format.type === 'text') return undefined
  if (format.type !== 'json_schema') return 'Answer with one JSON object and nothing else, not even a code fence.'
  if (traits.structured) {
    body['output_config'] = { format: { type: 'json_schema', schema: closedSchema(format.schema) } }
    return undefined
  }
  const schema = JSON.stringify(format.schema)
  return `Answer with one JSON object and nothing else, not even a code fence. It must match this JSON schema: ${schema}`
}
