import type { Conversation, OutputFormat, Tool, ToolChoice } from '../../domain/conversation.ts'
import type { Json, JsonObject } from '../../domain/json.ts'
import { allowedNote, modeOf } from '../allowed-tools.ts'
import { assertTranslatable } from '../assert-translatable.ts'
import { customAsFunction } from '../custom-tools.ts'
import { type Draft, writeFields } from '../fields.ts'
import type { WriteTarget } from '../format.ts'
import { markBody } from '../openai/cache-marks.ts'
import { ToolNames } from '../tool-names.ts'
import { hintNames, openaiHintNames, samplingNames } from './fields.ts'
import { writeMessages } from './write-messages.ts'

/** The request body for a provider of chat completions. @throws ServiceError if chat cannot express the request */
export function writeRequest(conversation: Conversation, target: WriteTarget): JsonObject {
  assertTranslatable(conversation)
  const { sampling, hints, reasoning, outputFormat } = conversation
  const { dialect } = target
  const names = new ToolNames(conversation.tools)
  const messages = writeMessages(conversation, target, names)
  const body: Draft<JsonObject> = { model: target.model, messages, stream: target.stream }
  if (target.stream && dialect.streamUsage) body['stream_options'] = { include_usage: true }
  writeTools(body, conversation, names)
  markBody('messages', body, target)
  addNote(messages, allowedNote(conversation, names))
  if (outputFormat !== undefined) body['response_format'] = writeOutputFormat(outputFormat)
  if (reasoning?.effort !== undefined) body['reasoning_effort'] = reasoning.effort
  if (sampling.maxOutputTokens !== undefined) body[dialect.maxTokensField] = sampling.maxOutputTokens
  if (sampling.stop !== undefined) body['stop'] = sampling.stop
  if (sampling.logprobs === true) {
    body['logprobs'] = true
    if (sampling.topLogprobs !== undefined) body['top_logprobs'] = sampling.topLogprobs
  }
  writeFields(body, samplingNames, sampling)
  writeFields(body, hintNames, hints)
  // Endpoints that support OpenAI's newest role also support these fields; others answer 400.
  if (dialect.developerRole) writeFields(body, openaiHintNames, hints)
  if (target.cache?.key !== undefined) body['prompt_cache_key'] = target.cache.key
  if (hints.metadata !== undefined) body['metadata'] = hints.metadata
  for (const field of dialect.refusedFields) delete body[field]
  return body
}

/** Adds what the model must know for this answer alone, after everything that the next turn repeats. */
function addNote(messages: JsonObject[], text: string | undefined): void {
  if (text !== undefined) messages.push({ role: 'user', content: text })
}

function writeTools(body: Draft<JsonObject>, conversation: Conversation, names: ToolNames): void {
  const { toolChoice, parallelToolCalls } = conversation
  const tools: Json[] = []
  for (const tool of conversation.tools) {
    if (tool.type === 'hosted') continue
    tools.push(writeTool(tool, names))
  }
  // Providers reject an empty list, and a tool choice without tools.
  if (tools.length === 0) return
  body['tools'] = tools
  if (toolChoice !== undefined) body['tool_choice'] = writeToolChoice(toolChoice, names)
  if (parallelToolCalls !== undefined) body['parallel_tool_calls'] = parallelToolCalls
}

function writeTool(tool: Exclude<Tool, { readonly type: 'hosted' }>, names: ToolNames): JsonObject {
  const name = names.flatten(tool.name, tool.namespace)
  if (tool.type === 'custom') return { type: 'function', function: { name, ...customAsFunction(tool) } }
  const declared: Draft<JsonObject> = { name }
  if (tool.description !== undefined) declared['description'] = tool.description
  declared['parameters'] = tool.parameters ?? { type: 'object', properties: {} }
  if (tool.strict !== undefined) declared['strict'] = tool.strict
  return { type: 'function', function: declared }
}

function writeToolChoice(choice: ToolChoice, names: ToolNames): Json {
  // Which tools are allowed stands after the messages, where many endpoints have no field for it.
  if (choice.type === 'allowed') return modeOf(choice)
  if (choice.type !== 'tool') return choice.type
  return { type: 'function', function: { name: names.choose(choice.name, choice.namespace) } }
}

function writeOutputFormat(format: OutputFormat): JsonObject {
  if (format.type !== 'json_schema') return { type: format.type }
  const { type, ...schema } = format
  return { type, json_schema: schema }
}
