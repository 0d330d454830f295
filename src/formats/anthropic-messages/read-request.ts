import type { Conversation, Hints, OutputFormat, Sampling } from '../../domain/conversation.ts'
import { type Json, type JsonObject, isObject } from '../../domain/json.ts'
import { fusionToolType } from '../../domain/profiles.ts'
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
  wrongType,
} from '../fields.ts'
import { samplingNames } from './fields.ts'
import { readMessages } from './read-messages.ts'
import { readTools, readToolChoice } from './read-tools.ts'
import { rejectThread } from './reject-thread.ts'

/** Other vendors accept no longer user names; a longer value here is not a name but a client's metadata. */
const maxUserCharacters = 64
/** OpenAI requires a schema name, which this format does not have. */
const unnamed = 'response'
/** Thinking budgets up to these token counts map to these efforts; all above are `high`. */
const budgets = [
  [2_048, 'low'],
  [12_000, 'medium'],
] as const

/**
 * Parses the body of a messages request. @throws ServiceError `invalid_request` and, for threads,
 * `unsupported_parameter`, with `param`
 */
export function readRequest(body: JsonObject): Conversation {
  rejectThread(body)
  const profile = requiredString(body, 'model')
  const messages = body['messages']
  if (!isArray(messages)) throw wrongType('messages', 'an array')
  const { tools, fusionTool } = readTools(arrayField(body, 'tools') ?? [])
  const conversation: Draft<Conversation> = {
    profile,
    stream: booleanField(body, 'stream') ?? false,
    turns: readMessages(body['system'], messages),
    tools,
    ...readToolChoice(objectField(body, 'tool_choice')),
    sampling: readSampling(body),
    streamUsage: true,
    hints: readHints(body),
  }
  if (fusionTool !== undefined) conversation.fusionTool = fusionTool
  if (objectField(body, 'tool_choice')?.['type'] === fusionToolType) conversation.isFusionForced = true
  const config = objectField(body, 'output_config')
  // `output_format` is its former name.
  const outputFormat = readOutputFormat(config?.['format'] ?? body['output_format'])
  if (outputFormat !== undefined) conversation.outputFormat = outputFormat
  const reasoning = readReasoning(objectField(body, 'thinking'), config)
  if (reasoning !== undefined) conversation.reasoning = reasoning
  return conversation
}

function readSampling(body: JsonObject): Sampling {
  const sampling: Draft<Sampling> = numberFields(body, samplingNames)
  const maxTokens = countField(body, 'max_tokens', 0)
  // 0 only fills Anthropic's cache; other providers reject it.
  if (maxTokens !== undefined) sampling.maxOutputTokens = Math.max(1, maxTokens)
  const stop = arrayField(body, 'stop_sequences')
  if (stop !== undefined && stop.length > 0) sampling.stop = stop.map(readStop)
  return sampling
}

function readStop(text: Json): string {
  if (typeof text !== 'string') throw wrongType('stop_sequences', 'an array of strings')
  return text
}

function readOutputFormat(format: Json | undefined): OutputFormat | undefined {
  if (!isObject(format) || format['type'] !== 'json_schema' || !isObject(format['schema'])) return undefined
  return { type: 'json_schema', name: unnamed, schema: format['schema'] }
}

function readReasoning(thinking: JsonObject | undefined, config: JsonObject | undefined): Conversation['reasoning'] {
  const effort = config === undefined ? undefined : stringField(config, 'effort', 'output_config.')
  const type = thinking?.['type']
  const budget = thinking === undefined ? undefined : countField(thinking, 'budget_tokens', 0, 'thinking.')
  const meant = effort ?? (type === 'enabled' && budget !== undefined ? effortOf(budget) : undefined)
  // Adaptive thinking alone requests nothing: many other models reject a request for reasoning.
  if (meant === undefined) return undefined
  const isShown = (type === 'enabled' || type === 'adaptive') && thinking?.['display'] !== 'omitted'
  return isShown ? { effort: meant, summary: 'auto' } : { effort: meant }
}

function effortOf(budget: number): string {
  for (const [most, effort] of budgets) if (budget <= most) return effort
  return 'high'
}

function readHints(body: JsonObject): Hints {
  const hints: Draft<Hints> = {}
  const user = objectField(body, 'metadata')?.['user_id']
  if (typeof user === 'string' && user !== '' && user.length <= maxUserCharacters) hints.user = user
  const tier = stringField(body, 'service_tier')
  if (tier === 'auto') hints.serviceTier = tier
  else if (tier === 'standard_only') hints.serviceTier = 'default'
  const servers = body['mcp_servers']
  if (isArray(servers) && servers.length > 0) hints.untranslatable = ['mcp_servers']
  return hints
}
