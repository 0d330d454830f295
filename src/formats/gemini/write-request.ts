import type { Conversation, OutputFormat } from '../../domain/conversation.ts'
import type { JsonObject } from '../../domain/json.ts'
import { allowedNote } from '../allowed-tools.ts'
import { assertTranslatable, unsupported } from '../assert-translatable.ts'
import { type Draft, writeFields } from '../fields.ts'
import type { WriteTarget } from '../format.ts'
import { ToolNames } from '../tool-names.ts'
import { generationOf } from './model-generation.ts'
import { writeThinking } from './thinking.ts'
import { writeContents } from './write-contents.ts'
import { writeSchema } from './write-schema.ts'
import { writeTools } from './write-tools.ts'

const samplingNames = [
  ['temperature', 'temperature'],
  ['topP', 'topP'],
  ['topK', 'topK'],
  ['maxOutputTokens', 'maxOutputTokens'],
  ['seed', 'seed'],
  ['presencePenalty', 'presencePenalty'],
  ['frequencyPenalty', 'frequencyPenalty'],
] as const

/**
 * The body of `generateContent`; the model and the stream mode are in the path. @throws ServiceError if Gemini cannot
 * express the request
 */
export function writeRequest(conversation: Conversation, target: WriteTarget): JsonObject {
  assertTranslatable(conversation)
  if ((conversation.sampling.choices ?? 1) > 1) {
    throw unsupported('n', 'The backends of this profile return one answer per request. Set n to 1, or leave it out.')
  }
  const names = new ToolNames(conversation.tools)
  const { system, contents } = writeContents(conversation, names, target.model)
  const body: Draft<JsonObject> = { contents }
  writeTools(body, conversation, names)
  const { config, instruction } = writeConfig(conversation, target, body['tools'] !== undefined)
  if (system.length > 0) body['systemInstruction'] = { parts: system.map((text) => ({ text })) }
  addNote(contents, [instruction, allowedNote(conversation, names)])
  if (Object.keys(config).length > 0) body['generationConfig'] = config
  return body
}

/**
 * Adds to the user's last content what the model must know for this answer alone: anywhere else it would change what
 * the next turn repeats.
 */
function addNote(contents: readonly JsonObject[], notes: readonly (string | undefined)[]): void {
  const parts = contents.findLast(({ role }) => role === 'user')?.['parts'] as JsonObject[] | undefined
  for (const text of notes) if (text !== undefined) parts?.push({ text })
}

function writeConfig(
  conversation: Conversation,
  { model, dialect }: WriteTarget,
  hasTools: boolean,
): { readonly config: JsonObject; readonly instruction?: string } {
  const { sampling, outputFormat } = conversation
  const config: Draft<JsonObject> = {}
  writeFields(config, samplingNames, sampling)
  if (sampling.stop !== undefined && sampling.stop.length > 0) config['stopSequences'] = sampling.stop
  if (sampling.logprobs === true) {
    config['responseLogprobs'] = true
    if (sampling.topLogprobs !== undefined && sampling.topLogprobs > 0) config['logprobs'] = sampling.topLogprobs
  }
  const thinking = writeThinking(conversation, model)
  if (thinking !== undefined) config['thinkingConfig'] = thinking
  for (const field of dialect.refusedFields) delete config[field]
  if (outputFormat === undefined || outputFormat.type === 'text') return { config }
  // Before Gemini 3, an output schema and tools exclude each other.
  if (hasTools && generationOf(model) < 3) return { config, instruction: describeOutput(outputFormat) }
  config['responseMimeType'] = 'application/json'
  if (outputFormat.type === 'json_schema') config['responseJsonSchema'] = writeSchema(outputFormat.schema)
  return { config }
}

function describeOutput(format: OutputFormat): string {
  if (format.type !== 'json_schema') return 'Give your final answer as one JSON object and nothing else.'
  return `Give your final answer as JSON and nothing else. It must fit this JSON Schema:\n${JSON.stringify(format.schema)}`
}
