import type { Json } from '../../domain/json.ts'
import type { ViolatedRule, Need } from '../../domain/upstream.ts'
import { optionalFields, reasoningFields } from './optional-fields.ts'

/**
 * A known error sentence: all of these lowercase pieces occur in it. Searched as plain substrings, so in linear time.
 */
type Pieces = readonly string[]

/** The conversation, or the conversation plus the requested answer, does not fit the model's context window. */
const tooLong: readonly Pieces[] = [
  // OpenAI, vLLM, OpenRouter, DeepSeek, llama-cpp-python, Mistral.
  ['maximum context length'],
  // vLLM since 0.8.
  ["model's context length is"],
  ['maximum model length'],
  ['max_model_len'],
  // llama-server.
  ['exceeds the available context size'],
  // llama-cpp-python.
  ['exceed context window'],
  ['exceeds context window'],
  ['exceeds the context window'],
  ['exceed the context window'],
  // LiteLLM starts with the name of its exception.
  ['contextwindowexceedederror'],
  // Ollama.
  ['exceeds the context length'],
  ['exceeded max context length'],
  // LM Studio.
  ['context length of only'],
  // Anthropic.
  ['prompt is too long'],
  ['exceed context limit'],
  ['exceeds context limit'],
  ['exceed the context limit'],
  ['exceeds the context limit'],
  // Bedrock.
  ['input is too long'],
  // xAI.
  ['maximum prompt length'],
  // Google.
  ['input token count', 'exceed'],
  ['input context is too long'],
  ['exceeds the maximum', 'tokens'],
  ['exceeds the limit', 'tokens'],
  // Text Generation Inference.
  ['`inputs` tokens', 'must be <='],
  ['inputs must have less than', 'tokens'],
  // Groq.
  ['reduce the length of the messages'],
]

/** The backend lacks a capability, whatever the rest of the request is. */
const lacking: readonly (readonly [Need, ...(readonly Pieces[])])[] = [
  [
    'images',
    ['image input is not supported'],
    ['image input modality is not enabled'],
    ['not support image'],
    ['not support vision'],
    ['not accept image'],
    ['support image input'],
    ['images are not supported'],
    ['image_url is only supported'],
    ['not a multimodal model'],
    ['at most 0 image'],
    ['required for image input'],
    ['unknown variant `image_url`'],
    ['content must be a string'],
    ["'image_url'", 'not supported'],
  ],
  [
    'audio',
    ['audio input is not supported'],
    ['audio input modality is not enabled'],
    ['not support audio'],
    ['not support input_audio'],
    ['support input audio'],
    ['at most 0 audio'],
    ['unknown variant `input_audio`'],
    ["'input_audio'", 'not supported'],
    ['content must be a string'],
  ],
  [
    'files',
    ['not support file'],
    ['not support pdf'],
    ['not support document'],
    ['file input is not supported'],
    ['unknown variant `file`'],
    ['unknown variant `input_file`'],
    ["'file'", 'not supported'],
    ['content must be a string'],
  ],
  [
    'tools',
    ['not support tool'],
    ['not support function'],
    ['support tool use'],
    ['tools are not supported'],
    ['tool use is not supported'],
    ['tool calling', 'not supported'],
    ['function calling', 'not supported'],
    ['function calling is not enabled'],
    ['--enable-auto-tool-choice'],
    ['requires --jinja'],
  ],
  [
    'structured_outputs',
    ['response_format', 'not support'],
    ['response_format', 'unavailable'],
    ['response_format.type', 'must be'],
    ['response format', 'not support'],
    ['json_schema', 'not support'],
    ['structured output', 'not support'],
  ],
]

/** The backend does not know its configured model. */
const unknownModel: readonly Pieces[] = [
  ['invalid model name'],
  ['not a valid model'],
  ['model not exist'],
  ['model', 'does not exist'],
  ['model', 'not found, try pulling'],
  ['is not found for api version'],
  ['unknown model'],
  ['unknown_model'],
  ['invalid model:'],
]

/** Sentences of content filters that no other rejection uses, not even that of an account. */
const blockedContent: readonly Pieces[] = [
  // Azure.
  ['content management policy'],
  ['content filter'],
  ['content policy'],
  // OpenAI.
  ['prompt was flagged'],
  // OpenRouter.
  ['input was flagged'],
  ['flagged by moderation'],
  // xAI.
  ['content violates usage guidelines'],
  ['safety_check_type'],
  // DeepSeek.
  ['content exists risk'],
  // Alibaba.
  ['inappropriate content'],
]

/** Error codes of content filters. */
const refusalCodes = new Set<Json | undefined>([
  // OpenAI, Azure, OpenRouter.
  'content_filter',
  'content_policy_violation',
  'moderation_blocked',
  'bio_policy',
  'cyber_policy',
  'misalignment_policy_violation',
  'ResponsibleAIPolicyViolation',
  // Alibaba.
  'data_inspection_failed',
  'DataInspectionFailed',
])

const rules: readonly (readonly [ViolatedRule, ...(readonly Pieces[])])[] = [
  ['content_filter', ...blockedContent, ['safety system'], ['usage policies'], ['usage policy']],
  [
    'schema_invalid',
    ['invalid schema'],
    ['json schema conversion failed'],
    ['failed to parse grammar'],
    ['failed to initialize samplers'],
    ['invalid grammar'],
    ['grammar error'],
    ['schema', 'not supported'],
  ],
  [
    'image_unreadable',
    ['could not process image'],
    ['invalid image'],
    ['failed to load image'],
    ['cannot identify image'],
    ['unsupported image'],
    ['image data', 'not represent'],
    ['failed to decode image'],
    ['unable to process input image'],
  ],
  [
    'tool_results',
    ['tool_call_id'],
    ['tool_use` ids'],
    ['tool_result` block'],
    ["messages with role 'tool' must"],
    ['no tool call found'],
    ['no tool output found'],
    ['function response parts', 'equal'],
  ],
  ['turn_order', ['roles must alternate'], ['must alternate between'], ['last message', 'role']],
  [
    'answer_length',
    ['max_tokens', 'too large'],
    ['max_tokens', 'less than or equal'],
    ['max_completion_tokens', 'too large'],
    ['maximum allowed number of output tokens'],
  ],
]

const refusing: readonly string[] = [
  'not supported',
  'unsupported',
  'not support',
  'unknown name',
  'unknown parameter',
  'unknown field',
  'unrecognized',
  'extra inputs',
  'extra_forbidden',
  'not permitted',
  'unexpected',
  'not enabled',
]
const reasoningWords = ['thinking', 'reasoning', 'think value'] as const

const holds = (message: string, all: readonly Pieces[]): boolean =>
  all.some((pieces) => pieces.every((piece) => message.includes(piece)))

export function saysTooLong(message: string): boolean {
  return holds(message, tooLong)
}

/** Whether this request alone exceeds the provider's per-minute limit. */
export function saysTooLarge(message: string): boolean {
  return message.includes('request too large')
}

export function saysUnknownModel(message: string): boolean {
  return holds(message, unknownModel)
}

/** Every capability that the message reports as missing: some servers use one sentence for several. */
export function unsupportedNeeds(message: string): readonly Need[] {
  return lacking.filter(([, ...all]) => holds(message, all)).map(([need]) => need)
}

/** Whether an error code or type is that of a content filter. */
export function isRefusalCode(code: Json | undefined): boolean {
  return refusalCodes.has(code)
}

/** Whether the message is that of a content filter. A 403 can also be about the account, and then speak of policies. */
export function saysRefused(message: string, status: number | undefined): boolean {
  return status === 403 ? holds(message, blockedContent) : violatedRule(message) === 'content_filter'
}

export function violatedRule(message: string): ViolatedRule | undefined {
  return rules.find(([, ...all]) => holds(message, all))?.[0]
}

/** The optional fields that the message reports as unsupported. */
export function unsupportedFields(message: string): readonly string[] {
  if (!refusing.some((word) => message.includes(word))) return []
  const fields = Object.keys(optionalFields).filter((field) => names(message, field.toLowerCase()))
  if (reasoningWords.some((word) => message.includes(word))) fields.push(...reasoningFields)
  const limit = limitDenied.exec(message)
  if (limit !== null) fields.push((limit[1] ?? limit[2])!)
  return fields
}

/**
 * Whether the message names a field: one whose name is also an English word must be in quotes or where servers put a
 * name.
 */
function names(message: string, field: string): boolean {
  for (let at = message.indexOf(field); at >= 0; at = message.indexOf(field, at + field.length)) {
    const before = message[at - 1] ?? ''
    const after = message[at + field.length] ?? ''
    if (isWordChar(before) || isWordChar(after)) continue
    if (field.includes('_') || (quotes.includes(before) && quotes.includes(after))) return true
    const lead = message.slice(Math.max(0, at - 24), at)
    if (leads.some((words) => lead.endsWith(words)) || message.startsWith(': extra inputs', at + field.length))
      return true
  }
  return false
}

/** The rejected name of the length limit: messages that reject one name often recommend the other. */
const limitDenied =
  /(?:parameter|argument|field|supplied):? ['"`]?(max_(?:completion_)?tokens)\b|['"`](max_(?:completion_)?tokens)['"`] is not supported/

const quotes = ['"', "'", '`']
const leads = ['supplied: ', 'parameter: ', 'parameter ', 'argument: ', 'field: ', 'model: ']

function isWordChar(char: string): boolean {
  return /^\w$/.test(char)
}

/**
 * The context window stated in the message; only if the message begins with it, so that an echo of the request is not
 * trusted.
 */
export function statedWindow(message: string): number | undefined {
  const match =
    /^(?:litellm\.\w{1,40}: ){0,3}this (?:model|endpoint)'s maximum context length is (\d{2,8}) tokens/.exec(message)
  return match === null ? undefined : Number(match[1])
}
