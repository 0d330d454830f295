import type { Conversation } from '../../src/domain/conversation.ts'

/** A conversation with one question; `of` overrides fields. */
export function question(text = 'What is six times seven?', of: Partial<Conversation> = {}): Conversation {
  return {
    profile: 'svc-router/fusion',
    stream: true,
    streamUsage: true,
    turns: [{ role: 'user', parts: [{ type: 'text', text }] }],
    tools: [],
    sampling: {},
    hints: {},
    ...of,
  }
}
