import type { ClientConventions } from '../client-conventions.ts'
import { errorBody } from './error-body.ts'

/** How Anthropic's own API behaves toward its SDKs and Claude Code (contract 2.42). */
export const anthropicConventions: ClientConventions = {
  writeError: (error) => errorBody(error, error.signals),
  requestIdHeader: 'request-id',
  addVersion: true,
  tokenCount: { path: '/messages/count_tokens', write: (inputTokens) => ({ input_tokens: inputTokens }) },
}
