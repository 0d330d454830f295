import type { ClientManners } from '../manners.ts'
import { errorBody } from './error-body.ts'

/** How Anthropic's own API behaves toward its SDKs and Claude Code (contract 2.42). */
export const anthropicManners: ClientManners = {
  writeRefusal: (refusal) => errorBody(refusal, refusal.signals),
  requestIdHeader: 'request-id',
  addVersion: true,
  tokenCount: { path: '/messages/count_tokens', write: (inputTokens) => ({ input_tokens: inputTokens }) },
}
