import type { Conversation, Hints, Sampling } from '../../domain/conversation.ts'
import { type JsonObject, isObject } from '../../domain/json.ts'
import {
  arrayField,
  booleanField,
  countField,
  type Draft,
  isArray,
  numberField,
  numberFields,
  objectField,
  requiredString,
  stringField,
  stringFields,
  wrongType,
} from '../fields.ts'
import { readOutputFormat } from '../openai/read-output-format.ts'
import { readStop } from '../openai/read-stop.ts'
import { addTools, type DeclaredTools, isFusionChoice, readToolChoice } from '../openai/read-tools.ts'
import { hintNames, openaiHintNames, samplingNames } from './fields.ts'
import { readCandidates } from './read-candidates.ts'
import { readMessages } from './read-messages.ts'

/** Parses the body of a chat request. @throws ServiceError `invalid_request` with `param` */
export function readRequest(body: JsonObject): Conversation {
  const profile = requiredString(body, 'model')
  const messages = body['messages']
  if (!isArray(messages)) throw wrongType('messages', 'an array')
  const declared: DeclaredTools = { tools: [] }
  const tools = arrayField(body, 'tools')
  if (tools !== undefined) addTools(declared, tools, 'tools')
  const conversation: Draft<Conversation> = {
    profile,
    stream: booleanField(body, 'stream') ?? false,
    turns: readMessages(messages),
    tools: declared.tools,
    sampling: readSampling(body),
    streamUsage: objectField(body, 'stream_options')?.['include_usage'] === true,
    hints: readHints(body),
  }
  if (declared.fusionTool !== undefined) conversation.fusionTool = declared.fusionTool
  const toolChoice = readToolChoice(body['tool_choice'])
  if (toolChoice !== undefined) conversation.toolChoice = toolChoice
  if (isFusionChoice(body['tool_choice'])) conversation.isFusionForced = true
  const parallelToolCalls = booleanField(body, 'parallel_tool_calls')
  if (parallelToolCalls !== undefined) conversation.parallelToolCalls = parallelToolCalls
  const outputFormat = readOutputFormat(body['response_format'], 'response_format')
  if (outputFormat !== undefined) conversation.outputFormat = outputFormat
  const effort = readEffort(body)
  if (effort !== undefined) conversation.reasoning = { effort }
  return conversation
}

function readSampling(body: JsonObject): Sampling {
  const sampling: Draft<Sampling> = numberFields(body, samplingNames)
  Object.assign(sampling, readCandidates(body))
  // Which of its two names a provider obeys is unknown if a request has both.
  const limits = [countField(body, 'max_tokens'), countField(body, 'max_completion_tokens')]
  const known = limits.filter((limit) => limit !== undefined)
  if (known.length > 0) sampling.maxOutputTokens = Math.max(...known)
  const stop = readStop(body['stop'])
  if (stop !== undefined) sampling.stop = stop
  const logprobs = booleanField(body, 'logprobs')
  if (logprobs !== undefined) sampling.logprobs = logprobs
  const topLogprobs = numberField(body, 'top_logprobs')
  if (topLogprobs !== undefined) sampling.topLogprobs = topLogprobs
  return sampling
}

function readEffort(body: JsonObject): string | undefined {
  const effort = stringField(body, 'reasoning_effort')
  if (effort !== undefined) return effort
  const { reasoning } = body
  return isObject(reasoning) && typeof reasoning['effort'] === 'string' ? reasoning['effort'] : undefined
}

function readHints(body: JsonObject): Hints {
  const hints: Draft<Hints> = { ...stringFields(body, hintNames), ...stringFields(body, openaiHintNames) }
  const metadata = objectField(body, 'metadata')
  if (metadata !== undefined) hints.metadata = metadata
  const untranslatable: string[] = []
  const { modalities, functions } = body
  if (isArray(modalities) && modalities.includes('audio')) untranslatable.push('modalities')
  if (isArray(functions) && functions.length > 0) untranslatable.push('functions')
  if (untranslatable.length > 0) hints.untranslatable = untranslatable
  return hints
}
