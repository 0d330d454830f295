import type { Format } from '../format.ts'
import { anthropicConventions } from './client-conventions.ts'
import { MessagesReader } from './read-answer.ts'
import { readRequest } from './read-request.ts'
import { MessagesWriter } from './write-answer.ts'
import { writeRequest } from './write-request.ts'

/** The Messages format, as defined by Anthropic and used by Claude Code. */
export const anthropicMessages: Format = {
  id: 'anthropic-messages',
  path: '/messages',
  inputField: 'messages',
  parsesArguments: true,
  outputLimit: { isRequired: true, members: (limit) => ({ max_tokens: limit }) },
  conventions: anthropicConventions,
  fieldNames: { input: 'messages', stop: 'stop_sequences' },
  upstreamPath: () => '/messages',
  readRequest,
  writeRequest,
  readAnswer: () => new MessagesReader(),
  writeAnswer: (context) => new MessagesWriter(context),
}
