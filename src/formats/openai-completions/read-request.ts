import type { Conversation, Hints, Sampling } from '../../domain/conversation.ts'
import { invalidRequest } from '../../domain/errors.ts'
import type { Json, JsonObject } from '../../domain/json.ts'
import {
  booleanField,
  countField,
  type Draft,
  isArray,
  numberFields,
  objectField,
  requiredString,
  stringFields,
  wrongType,
} from '../fields.ts'
import { samplingNames } from '../openai-chat/fields.ts'
import { readCandidates } from '../openai-chat/read-candidates.ts'
import { readStop } from '../openai/read-stop.ts'

/** Maximum number of prompts in one request (contract 30.16). */
const maxPrompts = 128

/** Parses the body of a text completion. @throws ServiceError `invalid_request` with `param` */
export function readRequest(body: JsonObject): Conversation {
  const profile = requiredString(body, 'model')
  const prompts = readPrompts(body['prompt'])
  const sampling = readSampling(body, prompts.length)
  const [prompt] = prompts
  return {
    profile,
    stream: booleanField(body, 'stream') ?? false,
    turns: [{ role: 'user', parts: [{ type: 'text', text: typeof prompt === 'string' ? prompt : '' }] }],
    tools: [],
    sampling,
    streamUsage: objectField(body, 'stream_options')?.['include_usage'] === true,
    hints: readHints(body, prompts),
  }
}

type Prompt = string | readonly number[]

/** A text, a list of texts, a list of token numbers, or a list of such lists. */
function readPrompts(prompt: Json | undefined): readonly Prompt[] {
  if (typeof prompt === 'string') return [prompt]
  if (!isArray(prompt)) throw wrongPrompt()
  if (prompt.length === 0) throw invalidRequest('prompt', 'prompt is empty. Send at least one text.')
  if (isTokens(prompt)) return [prompt]
  if (prompt.length > maxPrompts)
    throw invalidRequest('prompt', `prompt has more than ${maxPrompts} entries. Split them into several requests.`)
  return prompt.map((one) => {
    if (typeof one === 'string') return one
    if (isArray(one) && isTokens(one)) return one
    throw wrongPrompt()
  })
}

function isTokens(list: readonly Json[]): list is readonly number[] {
  return list.every((token) => typeof token === 'number')
}

function wrongPrompt(): Error {
  return wrongType('prompt', 'a string, or an array of strings or token numbers')
}

function readSampling(body: JsonObject, prompts: number): Sampling {
  const sampling: Draft<Sampling> = numberFields(body, samplingNames)
  Object.assign(sampling, readCandidates(body))
  // 0 with `echo` only rates the prompt.
  const maxOutputTokens = countField(body, 'max_tokens', 0)
  if (maxOutputTokens !== undefined) sampling.maxOutputTokens = maxOutputTokens
  const stop = readStop(body['stop'])
  if (stop !== undefined) sampling.stop = stop
  // Each prompt has its own choices.
  if (prompts > 1) {
    sampling.choices = prompts * (sampling.choices ?? 1)
    if (sampling.candidates !== undefined) sampling.candidates *= prompts
  }
  return sampling
}

/**
 * Fields that only a text completion server supports make the request fail if the prompt becomes a message (contract
 * 2.41).
 */
function readHints(body: JsonObject, prompts: readonly Prompt[]): Hints {
  const { suffix, echo, best_of: bestOf, logprobs } = body
  const untranslatable: string[] = []
  if (prompts.length > 1 || typeof prompts[0] !== 'string') untranslatable.push('prompt')
  if (typeof suffix === 'string' && suffix !== '') untranslatable.push('suffix')
  if (echo === true) untranslatable.push('echo')
  if (typeof bestOf === 'number' && bestOf > 1) untranslatable.push('best_of')
  if (typeof logprobs === 'number') untranslatable.push('logprobs')
  return { ...stringFields(body, [['user', 'user']]), ...(untranslatable.length > 0 && { untranslatable }) }
}
