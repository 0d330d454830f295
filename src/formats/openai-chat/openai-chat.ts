import type { Format } from '../format.ts'
import { openaiConventions } from '../openai/client-conventions.ts'
import { ChatReader } from './read-answer.ts'
import { readRequest } from './read-request.ts'
import { ChatWriter } from './write-answer.ts'
import { writeRequest } from './write-request.ts'

/** The chat completions format, as defined by OpenAI and used by most providers. */
export const openaiChat: Format = {
  id: 'openai-chat',
  path: '/chat/completions',
  inputField: 'messages',
  // Of chat's two names, backends that want the newer one get that.
  outputLimit: { members: (limit) => ({ max_tokens: limit, max_completion_tokens: undefined }) },
  hasOneText: true,
  conventions: openaiConventions,
  fieldNames: { input: 'messages' },
  upstreamPath: () => '/chat/completions',
  readRequest,
  writeRequest,
  readAnswer: () => new ChatReader(),
  writeAnswer: (context) => new ChatWriter(context),
}
