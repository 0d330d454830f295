import type { AssistantPart, Conversation, InputPart } from '../../domain/conversation.ts'
import { isObject, type Json, type JsonObject } from '../../domain/json.ts'
import { routingField } from '../../domain/routing-policy.ts'
import { canAddInput, isImage } from './input-bound.ts'

/** Members of a request that contain the conversation. */
const contentMembers = namesIn('messages input system prompt')
/** Members that neither contain audio nor ask for it. */
const audioFreeMembers = namesIn(`${routingField}
  model instructions stream stream_options n best_of seed stop stop_sequences suffix prediction metadata client_metadata
  max_tokens max_completion_tokens max_output_tokens temperature top_p top_k min_p frequency_penalty presence_penalty
  logprobs top_logprobs logit_bias echo tools tool_choice parallel_tool_calls max_tool_calls functions function_call
  response_format output_config text verbosity reasoning reasoning_effort thinking user safety_identifier session_id
  store include truncation background service_tier speed prompt_cache_key prompt_cache_retention cache_control
  dimensions encoding_format`)
/** Types of messages, of their parts, and of what is in these. */
const audioFreeTypes = namesIn(`
  message text input_text output_text summary_text reasoning_text refusal image_url input_image image base64 url
  reasoning thinking redacted_thinking function function_call function_call_output custom custom_tool_call
  custom_tool_call_output tool_use tool_result ephemeral`)
/** Their members, which have no audio if their values have none. */
const audioFreeParts = namesIn(`
  type id role name namespace status phase content text refusal logprobs image_url detail url source media_type data
  cache_control ttl prompt_cache_breakpoint tool_calls tool_call_id tool_use_id call_id function function_call custom
  output is_error reasoning reasoning_content thinking signature summary encrypted_content`)
/** Members with the URL of an image, which may be one of something else. */
const urlParts = namesIn('image_url url')
/** Members whose values are text for the model, whatever they are. */
const textParts = namesIn('arguments input annotations')

function namesIn(list: string): ReadonlySet<string> {
  return new Set(list.trim().split(/\s+/))
}

/**
 * Whether it is certain that a request contains no audio and asks for none, so that no price of audio applies. What is not
 * known may be audio.
 */
export function isAudioFree(body: JsonObject, { turns, tools }: Pick<Conversation, 'turns' | 'tools'>): boolean {
  return (
    tools.every((tool) => tool.type !== 'hosted' || !canAddInput(tool.declaration)) &&
    turns.every(({ parts }) => parts.every(isAudioFreePart)) &&
    Object.entries(body).every(isAudioFreeMember)
  )
}

function isAudioFreePart(part: InputPart | AssistantPart): boolean {
  if (part.type === 'image') return isImage(part.url)
  return part.type !== 'audio' && part.type !== 'file'
}

function isAudioFreeMember([name, value]: [string, Json | undefined]): boolean {
  if (value === undefined || value === null || audioFreeMembers.has(name)) return true
  if (name === 'modalities') return Array.isArray(value) && value.every((modality) => modality === 'text')
  // An object is a prompt that the provider stores.
  return contentMembers.has(name) && !isObject(value) && isAudioFreeContent(value)
}

function isAudioFreeContent(value: Json): boolean {
  if (Array.isArray(value)) return (value as readonly Json[]).every(isAudioFreeContent)
  if (!isObject(value)) return true
  return Object.entries(value).every(([name, member]) => {
    if (member === undefined || member === null || textParts.has(name)) return true
    if (name === 'type') return typeof member === 'string' && audioFreeTypes.has(member)
    if (typeof member === 'string' && urlParts.has(name)) return isImage(member)
    return audioFreeParts.has(name) && isAudioFreeContent(member)
  })
}
