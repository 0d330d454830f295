import type { Format } from '../format.ts'
import { openaiConventions } from '../openai/client-conventions.ts'
import { ResponsesReader } from './read-answer.ts'
import { readRequest } from './read-request.ts'
import { ResponsesWriter } from './write-answer.ts'
import { writeRequest } from './write-request.ts'

/** The Responses format, as defined by OpenAI and described by Open Responses. */
export const openaiResponses: Format = {
  id: 'openai-responses',
  path: '/responses',
  inputField: 'input',
  outputLimit: { members: (limit) => ({ max_output_tokens: limit }) },
  storesAnswers: true,
  hasServiceCalls: true,
  conventions: openaiConventions,
  fieldNames: { messages: 'input' },
  upstreamPath: () => '/responses',
  readRequest,
  writeRequest,
  readAnswer: () => new ResponsesReader(),
  writeAnswer: (context) => new ResponsesWriter(context),
}
