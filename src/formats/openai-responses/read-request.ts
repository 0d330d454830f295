import type { Conversation, Hints, Sampling } from '../../domain/conversation.ts'
import { invalidRequest, type ServiceError } from '../../domain/errors.ts'
import { type Json, type JsonObject, isObject } from '../../domain/json.ts'
import {
  arrayField,
  booleanField,
  countField,
  type Draft,
  isArray,
  numberFields,
  objectField,
  requiredString,
  stringField,
  stringFields,
} from '../fields.ts'
import { readOutputFormat } from '../openai/read-output-format.ts'
import { addTools, type DeclaredTools, isFusionChoice, readToolChoice } from '../openai/read-tools.ts'
import { hintNames, includeLogprobs, includeSealed, penaltyNames, samplingNames } from './fields.ts'
import { readInput, type ReadInput } from './read-input.ts'

/** Parses the body of a Responses request. @throws ServiceError `invalid_request` with `param` */
export function readRequest(body: JsonObject): Conversation {
  const profile = requiredString(body, 'model')
  const declared: DeclaredTools = { tools: [] }
  const tools = arrayField(body, 'tools')
  if (tools !== undefined) addTools(declared, tools, 'tools')
  const listed = declared.tools.length
  const input = readInput(body['input'], declared)
  const lateTools = declared.tools.length - listed
  const text = objectField(body, 'text')
  const conversation: Draft<Conversation> = {
    profile,
    stream: booleanField(body, 'stream') ?? false,
    turns: input.turns,
    tools: declared.tools,
    sampling: readSampling(body),
    streamUsage: false,
    hints: readHints(body, text, input, lateTools),
  }
  if (declared.fusionTool !== undefined) conversation.fusionTool = declared.fusionTool
  const toolChoice = readToolChoice(body['tool_choice'])
  if (toolChoice !== undefined) conversation.toolChoice = toolChoice
  if (isFusionChoice(body['tool_choice'])) conversation.isFusionForced = true
  const parallelToolCalls = booleanField(body, 'parallel_tool_calls')
  if (parallelToolCalls !== undefined) conversation.parallelToolCalls = parallelToolCalls
  const outputFormat = readOutputFormat(text?.['format'], 'text.format')
  if (outputFormat !== undefined) conversation.outputFormat = outputFormat
  const reasoning = readReasoning(objectField(body, 'reasoning'))
  if (reasoning !== undefined) conversation.reasoning = reasoning
  return conversation
}

function readSampling(body: JsonObject): Sampling {
  const sampling: Draft<Sampling> = numberFields(body, samplingNames)
  Object.assign(sampling, numberFields(body, penaltyNames))
  countField(body, 'max_output_tokens')
  const include = arrayField(body, 'include')
  if ((sampling.topLogprobs ?? 0) > 0 || include?.includes(includeLogprobs) === true) sampling.logprobs = true
  return sampling
}

function readReasoning(reasoning: JsonObject | undefined): Conversation['reasoning'] {
  if (reasoning === undefined) return undefined
  const effort = stringField(reasoning, 'effort', 'reasoning.')
  const summary = stringField(reasoning, 'summary', 'reasoning.')
  if (effort === undefined && summary === undefined) return undefined
  return { ...(effort !== undefined && { effort }), ...(summary !== undefined && { summary }) }
}

function readHints(body: JsonObject, text: JsonObject | undefined, input: ReadInput, lateTools: number): Hints {
  const hints: Draft<Hints> = stringFields(body, hintNames)
  const metadata = objectField(body, 'metadata')
  if (metadata !== undefined) hints.metadata = metadata
  const store = booleanField(body, 'store')
  if (store !== undefined) hints.store = store
  if (arrayField(body, 'include')?.includes(includeSealed) === true) hints.sealedReasoning = true
  const previous = stringField(body, 'previous_response_id')
  if (previous !== undefined) hints.previousResponseId = previous
  const conversationId = readConversationId(body['conversation'])
  if (conversationId !== undefined) {
    if (previous !== undefined) throw eitherOne()
    hints.conversationId = conversationId
  }
  const maxToolCalls = countField(body, 'max_tool_calls', 0)
  if (maxToolCalls !== undefined) hints.maxToolCalls = maxToolCalls
  const verbosity = text === undefined ? undefined : stringField(text, 'verbosity', 'text.')
  if (verbosity !== undefined) hints.verbosity = verbosity
  if (lateTools > 0) hints.lateTools = lateTools
  if (input.references.length > 0) hints.references = input.references
  if (input.compactions === true) hints.compactions = true
  if (input.fusionEchoes === true) hints.fusionEchoes = true
  if (input.bareReasoning === true) hints.bareReasoning = true
  const untranslatable = booleanField(body, 'background') === true ? ['background'] : []
  if (isMeant(body['prompt'])) untranslatable.push('prompt')
  if (untranslatable.length > 0) hints.untranslatable = untranslatable
  return hints
}

/** `conversation` is an id, or an object that contains it. @throws ServiceError `invalid_request` */
function readConversationId(value: Json | undefined): string | undefined {
  if (value === undefined || value === null) return undefined
  const id = isObject(value) ? value['id'] : value
  if (typeof id === 'string' && id !== '') return id
  throw invalidRequest('conversation', 'conversation must be the ID of a conversation, or an object with its id.')
}

/** The error for a request that continues two things at once (contract 13.8). */
export function eitherOne(): ServiceError {
  return invalidRequest(
    'previous_response_id',
    'previous_response_id and conversation cannot be used together. Send one of them.',
  )
}

/** Whether the field requests something. */
function isMeant(value: Json | undefined): boolean {
  return value === true || (typeof value === 'string' && value !== '') || isObject(value) || isArray(value)
}
