import type { Format } from '../format.ts'
import { openaiManners } from '../openai/manners.ts'
import { ChatReader } from './read-answer.ts'
import { readRequest } from './read-request.ts'
import { ChatWriter } from './write-answer.ts'
import { writeRequest } from './write-request.ts'

/** Chat completions, as OpenAI defined them and most providers speak them. */
export const openaiChat: Format = {
  id: 'openai-chat',
  path: '/chat/completions',
  manners: openaiManners,
  fieldNames: { input: 'messages' },
  upstreamPath: () => '/chat/completions',
  readRequest,
  writeRequest,
  readAnswer: () => new ChatReader(),
  writeAnswer: (context) => new ChatWriter(context),
}
