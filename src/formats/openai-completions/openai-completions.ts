import { unsupported } from '../assert-translatable.ts'
import type { Format } from '../format.ts'
import { ChatReader, type CompletionKind } from '../openai-chat/read-answer.ts'
import { openaiConventions } from '../openai/client-conventions.ts'
import { readRequest } from './read-request.ts'
import { CompletionsWriter } from './write-answer.ts'

const kind: CompletionKind = {
  chunk: 'text_completion',
  messageOf: ({ text }) => (text == null ? undefined : { content: text }),
}

/**
 * Text completions, OpenAI's oldest format: a prompt in, its continuation out. Relayed to servers that have the
 * endpoint; for all others the prompt becomes a user message (contract 2.41).
 */
export const openaiCompletions: Format = {
  id: 'openai-completions',
  path: '/completions',
  inputField: 'prompt',
  outputLimit: { members: (limit) => ({ max_tokens: limit }) },
  conventions: openaiConventions,
  fieldNames: { input: 'prompt', messages: 'prompt' },
  upstreamPath: () => '/completions',
  readRequest,
  writeRequest: () => {
    throw unsupported(
      'messages',
      'The backends of this profile serve text completions only. Send the request to /v1/completions.',
    )
  },
  readAnswer: () => new ChatReader(kind),
  writeAnswer: (context) => new CompletionsWriter(context),
}
