/** Clients that figures distinguish, by their `User-Agent`. Everything else is `other`. */
const patterns = [
  ['claude-code', /^claude-(cli|code)/i],
  ['codex', /^codex/i],
  ['opencode', /^opencode/i],
  ['aider', /^aider/i],
  ['cline', /\b(cline|roo-?code)\b/i],
  ['continue', /^continue\b/i],
  ['langchain', /langchain|langgraph/i],
  ['ai-sdk', /\bai-sdk|^ai\/\d/i],
  ['anthropic-sdk', /^(async)?anthropic\//i],
  ['openai-sdk', /^(async)?openai\//i],
] as const

export type ClientFamily = (typeof patterns)[number][0] | 'other'

/** Coding agents, which continue nearly every conversation. */
const agents: ReadonlySet<ClientFamily> = new Set(['claude-code', 'codex', 'opencode', 'aider', 'cline', 'continue'])

/** Characters of a `User-Agent` that are read. */
const readCharacters = 200

/** The family of a client; `other` for everything unknown, so that figures stay few. */
export function clientFamilyOf(userAgent: string | undefined): ClientFamily {
  if (userAgent === undefined) return 'other'
  const start = userAgent.slice(0, readCharacters)
  return patterns.find(([, pattern]) => pattern.test(start))?.[0] ?? 'other'
}

export function isAgent(client: ClientFamily): boolean {
  return agents.has(client)
}
